#include "http/pipe.h"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>

#include "base/error.h"
#include "base/pinned_tls.h"
#include "http/url.h"

namespace sinew::http {

struct Tls {
  explicit Tls(asio::ssl::context::method method) : context(method) {
    context.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                        asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  }
  explicit Tls(SSL_CTX* made) : context(made), pinned(true) {}
  asio::ssl::context context;
  const bool pinned = false;  // true: a key identifies the server, not the host's name
};

namespace {

class PlainPipe : public Pipe {
 public:
  explicit PlainPipe(tcp::socket socket) : socket_(std::move(socket)) {}
  void handshake(Done done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }
  void read_some(asio::mutable_buffer into, Done done) override { socket_.async_read_some(into, std::move(done)); }
  void write_some(asio::const_buffer from, Done done) override { socket_.async_write_some(from, std::move(done)); }
  tcp::socket& socket() override { return socket_; }

 private:
  tcp::socket socket_;
};

class TlsPipe : public Pipe {
 public:
  using Side = asio::ssl::stream_base::handshake_type;
  TlsPipe(tcp::socket socket, std::shared_ptr<Tls> tls, Side side)
      : tls_(std::move(tls)), side_(side), stream_(std::move(socket), tls_->context) {}

  void verify_host(const std::string& host) {
    stream_.set_verify_mode(asio::ssl::verify_peer);
    stream_.set_verify_callback(asio::ssl::host_name_verification(host));
    if (!is_ip_address(host)) SSL_set_tlsext_host_name(stream_.native_handle(), host.c_str());
  }

  void handshake(Done done) override {
    stream_.async_handshake(side_, [done = std::move(done)](const error_code& error) { done(error, 0); });
  }
  void read_some(asio::mutable_buffer into, Done done) override { stream_.async_read_some(into, std::move(done)); }
  void write_some(asio::const_buffer from, Done done) override { stream_.async_write_some(from, std::move(done)); }
  tcp::socket& socket() override { return stream_.next_layer(); }

  std::string certificate_error() const override {
    auto* handle = const_cast<asio::ssl::stream<tcp::socket>&>(stream_).native_handle();
    const long result = ::SSL_get_verify_result(handle);
    if (is_stranger(handle)) return "it has another key than this client trusts";
    return result == X509_V_OK ? "" : ::X509_verify_cert_error_string(result);
  }

 private:
  std::shared_ptr<Tls> tls_;
  const Side side_;
  asio::ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::shared_ptr<Tls> server_tls(const ServerOptions& options) {
  if (options.own_key) return std::make_shared<Tls>(new_tls_server(*options.own_key));
  const std::string &certificate = options.certificate, &key = options.key;
  if (certificate.empty()) return nullptr;
  auto tls = std::make_shared<Tls>(asio::ssl::context::tls_server);
  error_code error;
  tls->context.use_certificate_chain_file(certificate, error);
  if (error) {
    throw Error("HTTP_BAD_CERTIFICATE", "cannot use the certificate " + certificate + ": " + error.message(),
                "give a PEM file with the server's certificate first, then the intermediate certificates");
  }
  tls->context.use_private_key_file(key, asio::ssl::context::pem, error);
  if (error) {
    throw Error("HTTP_BAD_CERTIFICATE",
                "cannot use the key " + key + " with the certificate " + certificate + ": " + error.message(),
                "give a PEM file with the private key of that certificate, without a passphrase");
  }
  return tls;
}

std::expected<std::shared_ptr<Tls>, std::string> client_tls(const ClientOptions& options) {
  if (options.server_key) return std::make_shared<Tls>(new_tls_client(options.server_key));
  const std::string& authority = options.certificate_authority;
  auto tls = std::make_shared<Tls>(asio::ssl::context::tls_client);
  error_code error;
  if (authority.empty()) {
    tls->context.set_default_verify_paths(error);
    if (error) return std::unexpected("cannot read the system's trusted certificates: " + error.message());
  } else {
    tls->context.load_verify_file(authority, error);
    if (error) return std::unexpected("cannot read certificates from " + authority + ": " + error.message());
  }
  return tls;
}

bool peer_sent_http(const error_code& failure) {
  return failure.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(failure.value())) == SSL_R_HTTP_REQUEST;
}

bool peer_sent_no_tls(const error_code& failure) {
  return failure.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(failure.value())) == SSL_R_WRONG_VERSION_NUMBER;
}

std::unique_ptr<Pipe> plain_pipe(tcp::socket socket) {
  return std::make_unique<PlainPipe>(std::move(socket));
}

std::unique_ptr<Pipe> server_pipe(tcp::socket socket, std::shared_ptr<Tls> tls) {
  return std::make_unique<TlsPipe>(std::move(socket), std::move(tls), asio::ssl::stream_base::server);
}

std::unique_ptr<Pipe> client_pipe(tcp::socket socket, std::shared_ptr<Tls> tls, const std::string& host) {
  const bool by_name = !tls->pinned;
  auto pipe = std::make_unique<TlsPipe>(std::move(socket), std::move(tls), asio::ssl::stream_base::client);
  if (by_name) pipe->verify_host(host);
  return pipe;
}

}  // namespace sinew::http
