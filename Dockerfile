# Sinew in a container: `docker build -t sinew .`, then
#   docker run --rm -v "$PWD:/job" sinew train job.yaml
# Job files name data by paths below the mounted folder; runs/ appears in it.

FROM debian:12 AS build
WORKDIR /sinew
COPY . .
# Installs what the build needs (the one list is in ./dev) and builds both programs.
RUN ./dev build
# The programs, and the shared libraries that are not Debian's: libtorch and what came with it.
RUN mkdir -p /out/bin /out/lib \
    && cp build/release/bin/sinew build/release/bin/sinew-worker /out/bin/ \
    && ldd build/release/bin/sinew-worker | awk '$3 ~ "^/sinew/" {print $3}' | xargs -r cp -L -t /out/lib

FROM debian:12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends libssl3 libyaml-cpp0.7 libpng16-16 libfreetype6 zlib1g libturbojpeg0 libwebp7 libwebpdemux2 libtiff6 libgif7 libzstd1 libsqlite3-0 libpq5 libtcmalloc-minimal4 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 sinew
COPY --from=build /out/bin/ /usr/local/bin/
COPY --from=build /out/lib/ /usr/local/lib/sinew/
RUN echo /usr/local/lib/sinew >/etc/ld.so.conf.d/sinew.conf && ldconfig
USER sinew
WORKDIR /job
# SIGTERM reaches the worker itself: it saves a checkpoint and exits with 75.
ENTRYPOINT ["sinew"]
CMD ["--help"]
