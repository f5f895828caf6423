// Tests with a disk that is full, broken or read-only, and with a file that belongs to another program. The store must
// throw an Error with the right code and lose no acknowledged write.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <map>
#include <set>

#include "store/children.h"
#include "store/packed.h"
#include "store/schema.h"
#include "store/testing.h"

namespace sinew::store {
namespace {

// Fails the writes of SQLite: after a given number of writes, every further one.
struct FaultyDisk {
  int64_t writes_left = -1;  // -1: no write fails
  int code = SQLITE_IOERR_WRITE;
  bool syncs_only = false;
  int64_t writes = 0;
  int fault(bool sync) {
    ++writes;
    if (writes_left < 0 || (syncs_only && !sync)) return SQLITE_OK;
    if (writes_left > 0) {
      --writes_left;
      return SQLITE_OK;
    }
    return sync && code == SQLITE_IOERR_WRITE ? SQLITE_IOERR_FSYNC : code;
  }
};
FaultyDisk faults;

sqlite3_vfs* real_vfs() {
  static sqlite3_vfs* vfs = sqlite3_vfs_find("unix");
  return vfs;
}
// Opens a file with SQLite's own methods, but with other methods for writing and syncing.
int faulty_open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
  static std::map<const sqlite3_io_methods*, std::unique_ptr<sqlite3_io_methods>> wrapped;
  static const sqlite3_io_methods* real = nullptr;
  const int code = real_vfs()->xOpen(real_vfs(), name, file, flags, out);
  if (code != SQLITE_OK || file->pMethods == nullptr) return code;
  real = file->pMethods;
  auto& methods = wrapped[real];
  if (methods == nullptr) {
    methods = std::make_unique<sqlite3_io_methods>(*real);
    methods->xWrite = [](sqlite3_file* at, const void* bytes, int size, sqlite3_int64 offset) {
      const int fault = faults.fault(false);
      return fault != SQLITE_OK ? fault : real->xWrite(at, bytes, size, offset);
    };
    methods->xSync = [](sqlite3_file* at, int how) {
      const int fault = faults.fault(true);
      return fault != SQLITE_OK ? fault : real->xSync(at, how);
    };
    methods->xTruncate = [](sqlite3_file* at, sqlite3_int64 size) {
      const int fault = faults.fault(false);
      return fault != SQLITE_OK ? fault : real->xTruncate(at, size);
    };
  }
  file->pMethods = methods.get();
  return code;
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    static sqlite3_vfs faulty = *real_vfs();
    faulty.zName = "faulty";
    faulty.xOpen = faulty_open;
    sqlite3_vfs_register(&faulty, 1);
    faults = {};
  }
  void TearDown() override { sqlite3_vfs_register(real_vfs(), 1); }
};

// Writes runs with points. Adds the numbers of the acknowledged runs to `said`.
void write_some(Store& store, int from, int to, std::set<int>& said) {
  for (int i = from; i < to; ++i) {
    const std::string id = std::to_string(i);
    const auto outcome = store.write(Batch{{Create{{Kind::kRun, id}, "e", "", std::string(3000, 'x')},
                                            AddPoints{id, "k", std::vector<Point>(100, {i, 0, 1})}},
                                           id});
    if (outcome.has_value()) said.insert(i);
  }
}

void check_runs(Store& store, const std::set<int>& said) {
  std::set<int> there;
  for (const Record& run : store.list({.kind = Kind::kRun, .limit = 100000})) {
    EXPECT_EQ(run.body.size(), 3000U);
    EXPECT_EQ(run.metrics.size(), 1U);
    there.insert(std::stoi(run.subject.id));
  }
  for (const int i : said) EXPECT_TRUE(there.contains(i)) << i << " was acknowledged and is lost";
  EXPECT_THAT(store.check(), testing::IsEmpty());
}

// Lets one write after another be the first that fails, in each way in which a write can fail.
TEST_F(Faults, NoWriteThatFailsLosesAnything) {
  for (const int code : {SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC}) {
    int64_t total = 0;
    for (int64_t fail_at = -1; fail_at < total || fail_at < 0; fail_at += 1 + total / 30) {
      const Folder folder;
      const std::string path = folder / "store.db";
      std::set<int> said;
      faults = {};
      faults.code = code == SQLITE_IOERR_FSYNC ? SQLITE_IOERR_WRITE : code;
      faults.syncs_only = code == SQLITE_IOERR_FSYNC;
      faults.writes_left = fail_at;
      std::unique_ptr<Store> store;
      const std::string error = error_of([&] {
        store = std::make_unique<Store>(path);
        done(*store, Create{{Kind::kExperiment, "e"}});
        write_some(*store, 0, 12, said);
      });
      if (fail_at < 0) total = faults.writes;
      EXPECT_EQ(error.empty(), fail_at < 0 || said.size() == 12) << error;
      faults.writes_left = -1;
      // The disk works again. The open store continues, and a store that is opened now finds everything.
      if (store == nullptr) store = std::make_unique<Store>(path);
      if (!store->find({Kind::kExperiment, "e"})) done(*store, Create{{Kind::kExperiment, "e"}});
      write_some(*store, 0, 20, said);  // the store recognises batches that it has written before by their keys
      ASSERT_EQ(said.size(), 20U);
      check_runs(*store, said);
      store = std::make_unique<Store>(path);
      check_runs(*store, said);
      ASSERT_FALSE(HasFailure()) << "fault " << code << " at " << fail_at;
    }
    ASSERT_GT(total, 40);
  }
}

TEST_F(Faults, AFullDiskIsReportedAndTheStoreContinuesWhenThereIsSpace) {
  const Folder folder;
  Store store(folder / "store.db");
  done(store, Create{{Kind::kExperiment, "e"}});
  faults.code = SQLITE_FULL;
  faults.writes_left = 0;
  std::set<int> said;
  EXPECT_EQ(code_of([&] { write_some(store, 0, 1, said); }), "STORE_NO_SPACE");
  EXPECT_TRUE(store.list({.kind = Kind::kExperiment}).size() == 1) << "reading still works";
  faults.writes_left = -1;
  write_some(store, 0, 1, said);
  check_runs(store, {0});
}

// Writes runs in a child process until the disk is full.
void fill(const std::string& path, const Child::Say& say) {
  Store store(path);
  store.write(Create{{Kind::kExperiment, "e"}});
  for (int i = 0; i < 5000; ++i) {
    std::set<int> said;
    write_some(store, i, i + 1, said);
    say(std::to_string(i));
  }
}

void check_full(Child& child, const std::string& path) {
  std::set<int> said;
  std::string line = child.line();
  for (; !line.empty() && !line.starts_with("error"); line = child.line()) said.insert(std::stoi(line));
  EXPECT_THAT(line, testing::HasSubstr("[STORE_NO_SPACE]"));
  EXPECT_GT(said.size(), 3U);
  const std::string error = error_of([&] {
    Store store(path);
    check_runs(store, said);
  });
  EXPECT_TRUE(error.empty() || error.find("[STORE_NO_SPACE]") != std::string::npos) << error;
}

TEST(FullDisk, IsReportedAndLosesNothing) {
  const Folder folder;
  Child child([&](const Child::Say& say) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    fill(folder / "store.db", say);
  });
  check_full(child, folder / "store.db");
}

TEST(FullDisk, OfOneMegabyteLosesNothing) {
  const Folder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0)
    return;  // this user cannot mount a file system; the test above simulates a full disk
  {
    Child child([&](const Child::Say& say) { fill(folder / "store.db", say); });
    check_full(child, folder / "store.db");
  }
  EXPECT_EQ(::umount(folder.path().c_str()), 0);
}

// Writes to the store as the user nobody, because root may write everywhere. Returns the error that this causes.
std::string error_as_nobody(const std::string& path) {
  Child child([&](const Child::Say& say) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) throw TestError("setuid");
    Store store(path);
    const auto outcome = store.write(Create{{Kind::kExperiment, "x"}});
    say(outcome.has_value() ? "written" : "refused");
  });
  return child.line();
}

TEST(Unwritable, IsReported) {
  const Folder folder;
  const std::string path = folder / "store.db";
  { Store store(path); }
  ::chmod(path.c_str(), 0444);
  ::chmod(folder.path().c_str(), 0555);
  EXPECT_THAT(error_as_nobody(path), testing::HasSubstr("[STORE_NOT_WRITABLE]"));
  EXPECT_THAT(error_as_nobody(folder / "new.db"), testing::HasSubstr("[STORE_CANNOT_OPEN]"));
  ::chmod(path.c_str(), 0666);  // now the file is writable, but SQLite cannot create the WAL in its directory
  EXPECT_THAT(error_as_nobody(path), testing::HasSubstr("error: store " + path));
  ::chmod(folder.path().c_str(), 0755);
}

TEST(Unreadable, FilesOfOtherProgramsAreRefused) {
  const Folder folder;
  const auto file = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return folder / name;
  };
  const std::string text = file("text", std::string(5000, 'x'));
  EXPECT_EQ(code_of([&] { Store store(text); }), "STORE_NOT_A_STORE");
  EXPECT_EQ(std::filesystem::file_size(text), 5000U);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((folder / "other.db").c_str(), &other), SQLITE_OK);
  sqlite3_exec(other, "CREATE TABLE experiments(a)", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_EQ(code_of([&] { Store store(folder / "other.db"); }), "STORE_NOT_A_STORE");
  EXPECT_EQ(code_of([&] { Store store(folder.path()); }), "STORE_CANNOT_OPEN");
  EXPECT_EQ(code_of([&] { Store store(folder / "none/store.db"); }), "STORE_CANNOT_OPEN");
}

// Overwrites a page with noise. Opening or checking the store must report it and must not crash.
TEST(Damage, IsReported) {
  const Folder folder;
  const std::string path = folder / "store.db";
  std::set<int> said;
  {
    Store store(path);
    done(store, Create{{Kind::kExperiment, "e"}});
    write_some(store, 0, 200, said);
  }
  const auto size = std::filesystem::file_size(path);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string copy = folder / ("copy" + std::to_string(seed));
    std::filesystem::copy_file(path, copy);
    {
      std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(4096 * (1 + seed * 17 % (size / 4096 - 1))));
      for (int i = 0; i < 4096; ++i) file.put(static_cast<char>(i * 31 + static_cast<int>(seed)));
    }
    const std::string error = error_of([&] {
      Store store(copy);
      const auto found = store.check();
      if (!found.empty()) throw TestError(found.front());
    });
    EXPECT_FALSE(error.empty()) << "page " << 1 + seed * 17 % (size / 4096 - 1);
  }
}

class Migrations : public OnBoth {
 protected:
  std::unique_ptr<Database> connect() {
    options.clock = &clock;
    return location.postgres() ? open_postgres(location.where(), options, Access::kWrite)
                               : open_sqlite(location.where(), options, Access::kWrite);
  }
  Options options;
};
ON_BOTH(Migrations);

TEST_P(Migrations, UpgradeInOneTransactionAndNeverDowngrade) {
  const std::vector<Migration> one = {
      {1, {"CREATE TABLE a(x INTEGER NOT NULL) STRICT", "INSERT INTO a(x) VALUES (7)"}}};
  auto two = one;
  two.push_back({2, {"CREATE TABLE b(x INTEGER NOT NULL) STRICT", "INSERT INTO b(x) SELECT x FROM a"}});
  auto broken = two;
  broken.push_back({3, {"CREATE TABLE c(x INTEGER NOT NULL) STRICT", "INSERT INTO nowhere(x) VALUES (1)"}});
  auto database = connect();
  migrate(*database, one, 0, "here");
  migrate(*database, one, 0, "here");
  EXPECT_NE(error_of([&] { migrate(*database, broken, 0, "here"); }), "");
  database = connect();
  database->begin_write();
  EXPECT_FALSE(database->has_table("b")) << "half a migration";
  EXPECT_FALSE(database->has_table("c"));
  database->roll_back();
  migrate(*database, two, 0, "here");
  database->begin_write();
  int64_t value = 0;
  database->each("SELECT x FROM b", {}, [&](const Row& row) { value = row.integer(0); });
  database->roll_back();
  EXPECT_EQ(value, 7);
  EXPECT_EQ(code_of([&] { migrate(*database, one, 0, "here"); }), "STORE_NEWER_VERSION");
}

TEST_P(Migrations, ANewerStoreIsRefused) {
  { open(); }
  auto database = connect();
  database->begin_write();
  database->run("INSERT INTO migration(version, at_ms) VALUES (?1, 0)", {int64_t{99}});
  database->commit(Database::Durability::kDurable);
  EXPECT_EQ(code_of([&] { open(); }), "STORE_NEWER_VERSION");
}

TEST_P(Migrations, AStoreOfVersionOneIsUpgraded) {
  auto database = connect();
  migrate(*database, migrations().first(1), 0, "here");
  database->begin_write();
  ASSERT_TRUE(database->has_table("trial"));
  database->commit(Database::Durability::kDurable);
  auto store = open();
  make_run(*store);
  EXPECT_TRUE(store->find({Kind::kRun, "r"}));
  database->begin_write();
  EXPECT_FALSE(database->has_table("trial"));
  database->roll_back();
}

TEST_P(Migrations, AStoreOfVersionTwoKeepsItsRecordsAndEvents) {
  auto database = connect();
  migrate(*database, migrations().first(2), 0, "here");
  database->begin_write();
  database->run("INSERT INTO event(seq, at_ms, what, kind, id, number, body) VALUES (1, 5, 'create', 1, 'e', 0, '{}')",
                {});
  database->run(
      "INSERT INTO record(seq, kind, id, number, parent, name, state, attempt, begun_ms, ended_ms, hidden, body, "
      "params, tags) VALUES (1, 1, 'e', 0, '', 'e', 0, 1, 5, 0, 1, '', ?1, ?1)",
      {Bytes{pack_labels({})}});
  database->commit(Database::Durability::kDurable);
  auto store = open();
  const auto record = store->find({Kind::kExperiment, "e"});
  ASSERT_TRUE(record);
  EXPECT_EQ(record->owner + record->hidden_by, "");
  EXPECT_TRUE(record->hidden);
  ASSERT_EQ(store->events({}).size(), 1U);
  EXPECT_EQ(store->events({}).at(0).actor.name, "");
}

}  // namespace
}  // namespace sinew::store
