# An image with a static, stripped binary and nothing else. It runs as nobody and writes no file. `make image` makes the same
# without Docker, on an empty base. The bases here are named by tag: pin them by digest in what you publish.
FROM golang:1.26 AS build
ARG VERSION=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY api api
COPY adapter adapter
COPY cmd cmd
COPY internal internal
COPY nodepool nodepool
COPY manifests/crds manifests/crds
COPY pipeline pipeline
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -buildid= -X github.com/foresail/foresail/internal/cli.release=$VERSION" -o /foresail ./cmd/foresail

FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION=unknown
LABEL org.opencontainers.image.title="foresail" \
      org.opencontainers.image.description="Scales Kubernetes pods and worker nodes before their load arrives" \
      org.opencontainers.image.url="https://github.com/foresail/foresail" \
      org.opencontainers.image.source="https://github.com/foresail/foresail" \
      org.opencontainers.image.documentation="https://github.com/foresail/foresail/tree/main/docs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=build /foresail /foresail
USER 65532:65532
EXPOSE 6443 8080 8443 9201 9443 9600
ENTRYPOINT ["/foresail"]
CMD ["run"]
