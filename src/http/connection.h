// One connection of the server: requests are read, handed on and answered one after another, in their order.
//
// While an answer is awaited the connection goes on reading (a bounded amount), so that a client that leaves is seen at
// once. An answer with a source is sent piece by piece, each asked for when the one before has left. Each phase has its
// own deadline. Nobody outside holds a connection: an Answer that is kept for long points to it weakly, so a client
// that left takes its connection with it.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "http/message.h"
#include "http/pipe.h"

namespace sinew::http {

class Connection;

// What all connections of a server share.
struct Service {
  ServerOptions options;
  Handler handler;
  Gate gate;
  // An Answer keeps this alive, not the Server: its call after the server is gone finds a context nobody runs.
  const std::shared_ptr<asio::io_context> context = std::make_shared<asio::io_context>();

  std::mutex mutex;
  std::condition_variable left;  // a connection is gone
  std::set<Connection*> connections;

  size_t count();
  std::vector<std::shared_ptr<Connection>> all();
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::unique_ptr<Pipe> pipe, std::shared_ptr<Service> service);
  ~Connection();

  auto executor() { return pipe_->socket().get_executor(); }
  // Everything below is called on the executor, or when no thread runs it any more.
  void start();
  void answer(uint64_t number, const Response& response);  // of the request with that number, if it still waits
  // The next piece of the body under way; nullopt: there will be none, and not because it ended.
  void take_piece(uint64_t number, std::optional<std::string> piece);
  void finish();  // sends the answer that is there, and closes
  void close();

 private:
  enum class Phase { greeting, idle, reading, answering, responding, asking, draining, closed };

  void tell_of_tls();
  void wait_for_request();
  void advance();
  void refuse(const Response& refusal);
  void hand_on();
  void wait_for_answer();
  void respond(const Response& response);
  void ask_for_piece();
  void end_response();
  bool endless() const { return !bytes_left_; }
  void drain();
  void read_more();
  void on_read(const error_code& error, std::string_view bytes);
  void send(std::string_view text);
  void write_more();
  void on_written(const error_code& error, size_t size);
  void set_deadline(double seconds);
  void on_deadline();

  const std::unique_ptr<Pipe> pipe_;
  const std::shared_ptr<Service> service_;
  std::string peer_;
  asio::steady_timer timer_;
  uint64_t deadline_ = 0;  // number of the newest one; an older one that rang already is no longer meant

  Phase phase_ = Phase::greeting;
  std::optional<RequestReader> reader_;
  uint64_t number_ = 0;  // of the request under way
  bool keep_alive_ = true, head_only_ = false, refused_ = false, finishing_ = false;
  size_t received_ = 0;      // since the deadline was set
  uint64_t body_bytes_ = 0;  // in all, with its header
  double patience_ = 0;      // seconds that an answer may still take, after the deadline that is set
  bool tells_ = false;       // that it takes long

  Source source_;         // of the answer under way
  std::string if_ended_;  // its body, if the server ends before there is any of it
  uint64_t piece_number_ = 0;
  bool chunked_ = false;
  std::optional<uint64_t> bytes_left_;  // still to come from the source

  std::string input_;                // read and not yet part of a request
  std::array<char, 1 << 10> small_;  // thousands of connections wait, few have much to say at once
  std::vector<char> large_;
  bool reading_ = false, input_ended_ = false;

  std::string output_;
  size_t written_ = 0, since_deadline_ = 0;
  bool writing_ = false;
};

}  // namespace sinew::http
