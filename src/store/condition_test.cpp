// Tests a store whose file is removed, replaced, cut or overwritten, or whose server stops. The store must report the
// problem and acknowledge no write.
#include <sqlite3.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "store/children.h"
#include "store/testing.h"

namespace sinew::store {
namespace {

namespace fs = std::filesystem;

// Returns a large tag with another value for each `i`: the store writes nothing if the tag has the value already.
SetTags large_tag(int i, const std::string& name = "a") {
  return {{Kind::kRun, "r"}, {{name, std::to_string(i) + std::string(10'000, 'x')}}};
}

class OpenStore : public testing::Test {
 protected:
  OpenStore() : store_(std::make_unique<Store>(path_)) { make_run(*store_); }
  // Expects that the store refuses everything with STORE_REPLACED.
  void expect_replaced() {
    EXPECT_EQ(code_of([&] { done(*store_, SetTags{{Kind::kRun, "r"}, {{"a", "b"}}}); }), "STORE_REPLACED");
    EXPECT_EQ(code_of([&] { store_->find({Kind::kRun, "r"}); }), "STORE_REPLACED");
    const auto now = store_->look(5);
    EXPECT_FALSE(now.usable);
    EXPECT_NE(now.problem.find(path_), std::string::npos) << now.problem;
  }

  Folder folder_;
  const std::string path_ = folder_ / "store.db";
  std::unique_ptr<Store> store_;
};

TEST_F(OpenStore, AnOrdinaryStoreIsUsable) {
  for (int i = 0; i < 3; ++i) {
    const auto now = store_->look(5);
    EXPECT_TRUE(now.usable);
    EXPECT_EQ(now.problem, "");
    done(*store_, SetTags{{Kind::kRun, "r"}, {{"a", std::to_string(i)}}});
  }
}

TEST_F(OpenStore, ARemovedStoreAcknowledgesNothing) {
  fs::remove(path_);
  expect_replaced();
}

TEST_F(OpenStore, AReplacedStoreAcknowledgesNothing) {
  { Store other(folder_ / "other.db"); }
  fs::rename(folder_ / "other.db", path_);
  expect_replaced();
}

TEST_F(OpenStore, AStoreWithoutItsWalAcknowledgesNothing) {
  fs::remove(path_ + "-wal");
  expect_replaced();
}

TEST_F(OpenStore, ACutFileIsNoticed) {
  for (int i = 0; i < 2000; ++i) done(*store_, large_tag(i));
  EXPECT_TRUE(store_->look(5).usable);
  ASSERT_GT(fs::file_size(path_), 100'000U);  // SQLite has moved the WAL into the file
  fs::resize_file(path_, 50'000);
  const auto now = store_->look(5);
  EXPECT_FALSE(now.usable);
  EXPECT_NE(now.problem, "");
}

// A connection of another program, which does not know the store.
class OtherProgram {
 public:
  explicit OtherProgram(const std::string& path) { EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK); }
  ~OtherProgram() { sqlite3_close(db_); }
  void run(const char* sql) {
    EXPECT_EQ(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db_);
  }

 private:
  sqlite3* db_ = nullptr;
};

// Afterwards the store grows in the WAL, so the file is smaller than the store until SQLite moves the WAL into it.
TEST_F(OpenStore, AVacuumOfAnotherProcessIsNoDamage) {
  OtherProgram other(path_);
  other.run("CREATE TABLE filler(bytes BLOB)");
  other.run("INSERT INTO filler VALUES (zeroblob(4000000))");
  other.run("PRAGMA wal_checkpoint(TRUNCATE)");
  EXPECT_TRUE(store_->look(5).usable);
  const auto before = fs::file_size(path_);
  other.run("DROP TABLE filler");
  other.run("VACUUM");
  other.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const auto after = fs::file_size(path_);
  ASSERT_LT(after, before / 2);
  for (int i = 0; i < 20; ++i) done(*store_, large_tag(i, "tag" + std::to_string(i)));
  ASSERT_EQ(fs::file_size(path_), after);  // all of it is in the WAL
  for (int i = 20; i < 40; ++i) {
    const auto now = store_->look(5);
    EXPECT_TRUE(now.usable) << i << ": " << now.problem;
    done(*store_, large_tag(i, "tag" + std::to_string(i)));
  }
  EXPECT_TRUE(store_->look(5).usable);
  fs::resize_file(path_, fs::file_size(path_) / 2);  // a cut is found nevertheless
  EXPECT_FALSE(store_->look(5).usable);
}

TEST_F(OpenStore, AnOverwrittenHeaderIsNoticed) {
  EXPECT_TRUE(store_->look(5).usable);
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary) << std::string(200, 'x');
  EXPECT_FALSE(store_->look(5).usable);
}

TEST_F(OpenStore, ADamagedPageIsNoticed) {
  for (int i = 0; i < 2000; ++i) done(*store_, large_tag(i));
  store_.reset();  // moves the WAL into the file
  store_ = std::make_unique<Store>(path_);
  const auto size = static_cast<int64_t>(fs::file_size(path_));
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  for (int64_t at = 4096 * 3; at < size; at += 4096) file.seekp(at) << std::string(4096, '\x7f');
  file.close();
  EXPECT_NE(store_->look(5).problem, "");
}

// Writes to a store in a child that dies without closing it, so that the WAL stays.
void write_and_die(const std::string& path, int count) {
  Child child([&](const Child::Say& say) {
    Store store(path);
    if (!store.find({Kind::kRun, "r"})) make_run(store);
    for (int i = 0; i < count; ++i) done(store, large_tag(i));
    say("written");
    ::_exit(0);
  });
  EXPECT_EQ(child.line(), "written");
}

TEST(Wal, OfAnotherStateOfTheFileIsRefusedAndLeftAlone) {
  const Folder folder;
  const std::string path = folder / "store.db";
  write_and_die(path, 5);
  { Store backup(path); }  // closing the store moves the WAL into the file
  fs::copy_file(path, folder / "backup.db");
  write_and_die(path, 30);
  fs::copy_file(path + "-wal", folder / "wal");
  // A store opens as the dead process left it, and so does a copy of all its files.
  fs::copy_file(path, folder / "copy.db");
  fs::copy_file(path + "-wal", folder / "copy.db-wal");
  EXPECT_EQ(code_of([&] { Store store(folder / "copy.db"); }), "");
  write_and_die(path, 3000);  // SQLite moves most of this into the file
  const auto late_pages = fs::file_size(path);
  // An old backup beside a new WAL must not open, and a new file beside an old WAL must not, either.
  fs::copy_file(folder / "backup.db", folder / "old.db");
  fs::copy_file(path + "-wal", folder / "old.db-wal");
  fs::copy_file(path, folder / "new.db");
  fs::copy_file(folder / "wal", folder / "new.db-wal");
  for (const char* name : {"old.db", "new.db"}) {
    const auto before = fs::file_size(folder / name);
    EXPECT_EQ(code_of([&] { Store store(folder / name); }), "STORE_FOREIGN_WAL") << name;
    EXPECT_EQ(fs::file_size(folder / name), before) << name;
    fs::remove(folder / (std::string(name) + "-wal"));
    fs::remove(folder / (std::string(name) + "-shm"));
    EXPECT_EQ(code_of([&] { Store store(folder / name); }), "") << name;
  }
  EXPECT_GT(late_pages, 0U);
}

TEST(ConditionOfPostgres, AStoppedServerIsNoticedAndItsReturnToo) {
  Location location(true);
  Options options;
  options.reconnect_seconds = 0.5;
  Store store(location.where(), options);
  make_run(store);
  EXPECT_TRUE(store.look(1).usable);
  PostgresServer::one().stop(SIGINT);
  EXPECT_FALSE(store.look(1).usable);
  EXPECT_EQ(code_of([&] { store.find({Kind::kRun, "r"}); }), "STORE_CONNECTION_LOST");
  EXPECT_NE(code_of([&] { (void)store.write(SetTags{{Kind::kRun, "r"}, {{"a", "b"}}}); }), "");
  PostgresServer::one().start();
  EXPECT_TRUE(store.look(5).usable);
  EXPECT_TRUE(store.find({Kind::kRun, "r"}));
  done(store, SetTags{{Kind::kRun, "r"}, {{"a", "b"}}});
}

}  // namespace
}  // namespace sinew::store
