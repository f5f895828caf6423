// Implements the interface of database.h on PostgreSQL.
#include "store/postgres_session.h"
#include "store/validator.h"

namespace sinew::store {
namespace {

class Postgres final : public Database {
 public:
  Postgres(const std::string& url, const Options& options, Access access)
      : access_(access), session_(url, options, access) {}

  void begin_write() override {
    session_.reconnect();
    session_.use([&](PostgresLink& link) { session_.begin_marked(link); });
  }
  void begin_read() override {
    session_.reconnect();
    session_.use([](PostgresLink& link) { link.send("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", {}); });
  }
  void commit(Durability durability) override {
    try {
      session_.link().send("COMMIT", {});
      if (durability == Durability::kDurable) session_.flush();
      session_.link().finish();
    } catch (const ConnectionLost&) {
      session_.drop_link();
      if (access_ == Access::kRead) return;
      if (!session_.was_committed()) throw;
    } catch (const Error&) {
      if (access_ == Access::kRead) throw;
      session_.drop_link();  // the statement that failed may come before or after the commit
      if (!session_.was_committed()) throw;
    }
  }
  void roll_back() noexcept override {
    if (!session_.connected()) return;
    try {
      session_.link().send("ROLLBACK", {});
      session_.link().finish();
    } catch (const Error&) {
      session_.drop_link();
    }
  }

  void run(std::string_view sql, std::initializer_list<Value> values) override {
    session_.use([&](PostgresLink& link) { link.send(sql, values); });
  }
  void each_while(std::string_view sql, std::initializer_list<Value> values,
                  const std::function<bool(const Row&)>& take) override {
    // The store holds only valid texts, so no row can match an invalid one. The server would refuse such a query with
    // an error.
    for (const Value& value : values) {
      const auto* text = std::get_if<std::string_view>(&value);
      if (text != nullptr && (!is_utf8(*text) || text->find('\0') != std::string_view::npos)) return;
    }
    session_.use([&](PostgresLink& link) {
      link.send(sql, values);
      link.finish_while(take);
    });
  }
  double now() override { return session_.now(); }
  bool has_table(std::string_view name) override {
    bool found = false;
    each("SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?1", {name},
         [&](const Row&) { found = true; });
    return found;
  }
  std::vector<std::string> check() override { return {}; }  // the server checks its own pages
  std::string damage(std::optional<int64_t>) override { return ""; }
  std::string quick_check() override { return ""; }

 private:
  const Access access_;
  PostgresSession session_;
};

}  // namespace

bool is_postgres(std::string_view where) {
  return where.starts_with("postgresql://") || where.starts_with("postgres://");
}

std::unique_ptr<Database> open_postgres(const std::string& url, const Options& options, Access access) {
  return std::make_unique<Postgres>(url, options, access);
}

}  // namespace sinew::store
