# The image of auth. Built from the root of the repository: docker build -f infra/docker/auth.Dockerfile .
# Everything after the install is read-only: it runs as 10001 and needs to write nowhere but to /tmp.

# By version and digest; Renovate keeps both.
FROM node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe AS base

FROM base AS build
# renovate: datasource=npm depName=pnpm
ARG PNPM_VERSION=12.21.0
RUN npm install --global "pnpm@${PNPM_VERSION}"
WORKDIR /build
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY infra/bundle/package.json infra/bundle/
COPY packages/common/package.json packages/common/
COPY services/auth/package.json services/auth/
RUN --mount=type=cache,id=pnpm-store,target=/pnpm-store \
    pnpm install --frozen-lockfile --prod --ignore-scripts --filter "@services/auth..." \
      --store-dir=/pnpm-store --package-import-method=copy \
 && pnpm install --frozen-lockfile --ignore-scripts --filter "@services/bundle" \
      --store-dir=/pnpm-store --package-import-method=copy
COPY LICENSE ./
COPY infra/bundle/bundle.ts infra/bundle/
COPY packages/common/src packages/common/src
COPY services/auth/migrations services/auth/migrations
COPY services/auth/src services/auth/src
RUN node infra/bundle/bundle.ts auth /app && cp LICENSE /app/

FROM base
# A package manager in an image serves those who broke in.
RUN rm -rf /usr/local/lib/node_modules /usr/local/include /opt/yarn-* \
      /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn /usr/local/bin/yarnpkg \
 && groupadd --gid 10001 app \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin app
COPY --from=build /app /app
WORKDIR /app
# Node's flags and the C library's settings are those of the script `start`, for every command. The memory of a
# password's hash, 19 MiB, is mapped for each and given back: after load a process has 140 MiB instead of up to 215, for 5 % more
# CPU of a sign-in. Without huge pages it would be 30 %.
ENV NODE_ENV=production \
    NODE_OPTIONS="--max-semi-space-size=4 --enable-source-maps" \
    NODE_COMPILE_CACHE=/app/.cache \
    GLIBC_TUNABLES="glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=4194304:glibc.malloc.hugetlb=1"
# Compiles once what every start would compile. As the user of later, whose id is in the cache's path; then owned by root and
# readable (Node makes its files 0600): what runs may read it and never write it.
RUN install -d -o 10001 -g 10001 "$NODE_COMPILE_CACHE" \
 && setpriv --reuid=10001 --regid=10001 --clear-groups node dist/cli.js version \
 && setpriv --reuid=10001 --regid=10001 --clear-groups node --eval "import('/app/dist/serve.js')" \
 && chown -R root:root "$NODE_COMPILE_CACHE" \
 && chmod -R a=rX "$NODE_COMPILE_CACHE"

ARG VERSION=0.0.0-dev
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="auth" \
      org.opencontainers.image.description="User management and authentication" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

USER 10001:10001
# Requests, and metrics where AUTH_METRICS_EXPORTER is prometheus.
EXPOSE 8081 9100
STOPSIGNAL SIGTERM
# Whether the process answers; a database that is away is no reason to end it. Not for `worker`, which listens nowhere.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=1s --retries=3 \
  CMD ["node", "-e", "const { AUTH_PORT, PORT, API_PORT } = process.env; require('node:http').get({ host: '127.0.0.1', port: AUTH_PORT || PORT || API_PORT || 8081, path: '/health/live' }, (answer) => process.exit(answer.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
ENTRYPOINT []
CMD ["node", "dist/main.js"]
