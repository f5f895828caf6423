// Inside http/: one connection of the server. It reads requests, calls the handler and sends the responses, in the
// order of the requests.
//
// While the handler works, the connection reads ahead a bounded number of bytes, so that it notices at once when the
// client leaves. It sends the body of a source piece by piece, and asks for a piece only when the previous one is sent.
// Each phase has its own deadline. An Answer holds only a weak pointer to the connection. So a connection whose client
// has left is destroyed even if a handler keeps the Answer.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "http/guests.h"
#include "http/message.h"
#include "http/pipe.h"

namespace sinew::http {

class Connection;

// The state that all connections of a server share.
struct Service {
  explicit Service(ServerOptions options_given)
      : options(std::move(options_given)), guests(options.max_connections, options.max_connections_of_address) {}

  const ServerOptions options;
  Handler handler;
  Admission admission;
  // Each Answer keeps the context alive. If an Answer is called after the Server's destruction, it posts to a context
  // that no thread runs, which has no effect.
  const std::shared_ptr<asio::io_context> context = std::make_shared<asio::io_context>();

  // Adds `more` to the number of bytes of bodies in memory; `more` below 0 frees bytes. Returns false if all bodies, or
  // those of the sender, exceed their limit.
  bool hold(const std::string& sender, int64_t more);

  std::mutex mutex;
  std::condition_variable closed;  // notified when a connection is destroyed
  Guests guests;

  std::mutex body_mutex;
  int64_t body_bytes = 0;                          // bytes of the bodies in memory
  std::map<std::string, int64_t> bytes_of_sender;  // the bytes of each sender that has any

  std::vector<std::shared_ptr<Connection>> all();
  // Returns whether the server accepts a new connection from the address. It may close another connection for it.
  bool make_room(const std::string& address);
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::unique_ptr<Pipe> pipe, std::shared_ptr<Service> service, std::string peer);
  ~Connection();

  auto executor() { return pipe_->socket().get_executor(); }
  // Call the functions below on the executor, or after the server's threads have ended.
  void start();
  void answer(uint64_t number, const Response& response);  // sends the response if the request `number` still waits
  // Takes the next piece of the current body. nullopt means that the source failed, so the body stays incomplete.
  void take_piece(uint64_t number, std::optional<std::string> piece);
  void finish();  // closes after a response that is being sent; closes at once if there is none
  // closes in favour of another connection, unless a handler works on a request of this one or its client is known
  void yield();
  void close();

 private:
  enum class Phase { handshake, idle, reading, awaiting_answer, responding, awaiting_piece, draining, closed };

  bool hold_body();
  void release_body();
  void abandon();
  void refuse_plain_http();
  void wait_for_request();
  void parse_input();
  void refuse(const Response& refusal);
  void refuse_slow_body();
  void call_handler();
  void wait_for_answer();
  void respond(const Response& response);
  void request_piece();
  void end_response();
  bool has_no_length() const { return !bytes_left_; }
  void drain();
  void read_more();
  void on_read(const error_code& error, std::string_view bytes);
  void send(std::string text);
  void write_more();
  void on_written(const error_code& error, size_t size);
  void set_deadline(double seconds);
  void on_deadline();

  const std::unique_ptr<Pipe> pipe_;
  const std::shared_ptr<Service> service_;
  const std::string peer_;
  asio::steady_timer timer_;
  uint64_t deadline_ = 0;  // number of the newest deadline; when an older one expires, the connection ignores it

  Phase phase_ = Phase::handshake;
  std::optional<RequestReader> reader_;
  uint64_t number_ = 0;  // number of the current request
  bool keep_alive_ = true, head_only_ = false, refused_ = false, finishing_ = false, known_ = false;
  size_t received_ = 0;         // bytes since the deadline was set
  uint64_t request_bytes_ = 0;  // header and body
  int64_t held_bytes_ = 0;      // bytes of the body in memory that Service::body_bytes counts
  std::string sender_;          // the sender of that body
  std::chrono::steady_clock::time_point request_begun_;
  std::shared_ptr<std::atomic<bool>> abandoned_;  // Request::abandoned of the request that a handler works on
  double seconds_left_ = 0;                       // time for the response beyond the current deadline
  bool sends_continue_ = false;                   // sends "100 Continue" while the client waits for the response

  Source source_;                 // the body of the current response, if it comes from a source
  std::string body_at_shutdown_;  // Response::body_at_shutdown of the current response
  uint64_t piece_number_ = 0;
  bool chunked_ = false;
  // bytes that the source must still produce; nullopt if the body has no known length
  std::optional<uint64_t> bytes_left_;

  std::string input_;  // bytes that were read but not parsed
  // Idle connections read into small_, so that thousands of them need little memory. A connection that reads a request
  // uses large_.
  std::array<char, 1 << 10> small_;
  std::vector<char> large_;
  bool reading_ = false, input_ended_ = false;

  std::shared_ptr<const void> until_sent_;  // Response::until_sent of the current response
  std::string output_;
  // bytes of output_ that were written, and bytes written since the deadline was set
  size_t written_ = 0, since_deadline_ = 0;
  bool writing_ = false;
};

}  // namespace sinew::http
