# Foresail. `make help` lists the targets; demo and build run from a clean clone with Go alone.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# As the release and the control plane are built, so that all share what has been compiled.
export CGO_ENABLED := 0

TOOL := go tool -modfile=internal/tools/go.mod
LINT := go tool -modfile=internal/tools/golangci/go.mod golangci-lint
WORDS := go run -C internal/tools/words .
# The packages that run a whole control plane. Two of SHARING run at a time, the longest first; the first has priority, and the
# others get what it leaves of the cores. Those of ALONE need both.
SHARING = ./test/suite/e2e ./test/suite/nodepool/live ./test/suite/nodepool ./test/suite/tenants ./test/suite/apiservice ./test/suite/helm ./test/env/controlplane/... ./test/env/monitoring/...
ALONE = ./test/suite/extender ./test/suite/nodejs/...
# Functions of what they are given, without goroutines (internal/archtest sees to that): the race detector would find nothing in them,
# and make them take ten times as long.
PURE = ./pipeline ./pipeline/decide ./pipeline/judge ./pipeline/learn ./pipeline/line ./pipeline/predict ./pipeline/redistribute ./nodepool/plan ./nodepool/cluster/scheduling ./nodepool/config ./internal/keepalive ./internal/schedule ./internal/lab ./internal/lab/report/chart ./internal/lab/world/fluid ./internal/lab/scaler/hpa ./internal/lab/world/queue ./internal/lab/scaler ./internal/lab/score ./internal/lab/world/workload
# WITH_TESTS lists the packages of a pattern that have tests.
WITH_TESTS = $(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(1))
# UNIT are the product's own tests, TOOLS those of what tests are made of.
UNIT = $(filter-out $(MODULE)/test/%,$(call WITH_TESTS,./...))
CONCURRENT = $(filter-out $(addprefix $(MODULE)/,$(PURE:./%=%)),$(UNIT) $(TOOLS))
TOOLS = $(filter-out $(MODULE)/test/suite/smoke $(shell go list $(SHARING) $(ALONE)),$(call WITH_TESTS,./test/...))
MODULE = github.com/foresail/foresail
# The files with tests of real lengths, which begin with "//go:build long". That of the image is part of a release.
LONG = $(shell grep -rl --include='*_test.go' --exclude-dir=.cache --exclude-dir=tools '^//go:build .*long' . || true)
LONG_TESTS = ^($(shell sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t .*).*/\1/p' $(LONG) | paste -sd '|' -))$$
# Those that the oldest supported KEDA has to pass too: what they test depends on its release.
OLDEST_KEDA = Authority|Pages|ScaledObjectF|Fallback
# The packages of LONG_TESTS, as SHARING and ALONE.
LONG_ALONE = ./test/suite/tenants/ ./test/suite/extender/ ./test/suite/nodejs/ ./test/env/loadgen/ ./test/env/workload/
LONG_FIRST = ./test/suite/keda/ ./test/suite/nodepool/ ./test/bench/karpenter/ ./test/suite/e2e/
LONG_SHARING = $(LONG_FIRST) $(filter-out $(LONG_FIRST) $(LONG_ALONE),$(sort $(dir $(LONG))))
# The packages with files that such tests replace.
NOT_LONG = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=.cache '^//go:build !long' .)))
# More than there are cores: packages that use the API server wait for their turn.
AT_ONCE := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
# Without go test's own vet, which looks at every dependency: see "make vet".
GO_TEST = go test -vet=off
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
# Stripped, and the same to the byte wherever and whenever it is built. The Dockerfile has the same flags.
BUILD := CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -buildid= -X github.com/foresail/foresail/internal/cli.release=$(VERSION)"
# What Foresail is installed from, dated as the commit, so that it is the same whenever it is made.
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
RELEASE := go run -C internal/tools/release .
IMAGE_PLATFORMS ?= linux/amd64 linux/arm64

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Watch a real HPA scale ahead of a ramp, next to one that follows the present load (4 minutes)
	@echo "make demo: builds Foresail (a minute) and, the first time, Kubernetes (5 minutes on two cores); then the demo takes 4 minutes" >&2
	go run ./test/demo/pods

.PHONY: demo-nodes
demo-nodes: ## Watch worker nodes be launched ahead of demand, and drained when it has gone (2 minutes)
	go run ./test/demo/nodes

.PHONY: test
test: announce-test controlplane moto ## Run the unit tests and the smoke suite on a real control plane
	@$(MAKE) --no-print-directory -j2 test-unit test-smoke

.PHONY: announce-test
announce-test:
	@echo "make test: the unit tests, and each promise of the README once on a real control plane; 3 minutes on two cores, and some minutes more the first time" >&2

.PHONY: vet
vet: ## Run go vet
	go vet -tags long ./...
	go vet $(NOT_LONG)
	go vet -C internal/tools/release -tags long ./...
	go vet -C internal/tools/words ./...
	go vet -C test/suite/permissions/terraform ./...
	go vet -C test/suite/scheduler ./...

# At low priority, because the smoke suite runs at the same time and plays loads in real time.
.PHONY: test-unit
test-unit: controlplane moto ## Run the unit tests
	nice -n 10 go run ./test/env/controlplane/cmd/controlplane lend -- $(GO_TEST) -timeout 20m -p $(AT_ONCE) $(UNIT)

.PHONY: test-smoke
test-smoke: controlplane ## Play each promise of the README once on a real control plane (a minute and a half)
	$(GO_TEST) -count=1 ./test/suite/smoke

.PHONY: test-race
test-race: controlplane moto ## Run the unit tests of what has goroutines with the race detector (needs a C compiler)
	go run ./test/env/controlplane/cmd/controlplane lend -- env CGO_ENABLED=1 $(GO_TEST) -race -timeout 20m -p $(AT_ONCE) $(CONCURRENT)

.PHONY: test-e2e
test-e2e: controlplane monitoring moto ## Run the tests of faults, races and variants on a real control plane, and those of tools (20 minutes; needs Node.js 18.2 or later)
	$(GO_TEST) -count=1 -p 2 -exec $(CURDIR)/test/env/politely -timeout 20m $(SHARING)
	$(GO_TEST) -count=1 -p 1 -timeout 20m $(ALONE)
	$(GO_TEST) $(TOOLS)
	go test -C internal/tools/release -vet=off ./...
	go test -C internal/tools/words -vet=off ./...
	go test -C test/suite/permissions/terraform -vet=off ./...
	go test -C test/suite/scheduler -vet=off -timeout 20m ./...
	go test -C test/suite/scheduler -vet=off -timeout 20m -tags oldest -modfile oldest.mod -overlay oldest.json . -args -worlds 200

# Of the processes of ./test/suite/nodepool most wait for others, so more run at once than there are cores.
.PHONY: test-long
test-long: controlplane monitoring moto watt ## Run what `make test-e2e` leaves out: real lengths, every crash point, more seeds, larger bursts, older releases of others (build tag long; 45 minutes)
	$(GO_TEST) -count=1 -p 2 -parallel 4 -exec $(CURDIR)/test/env/politely -timeout 40m -tags long -run '$(LONG_TESTS)' $(LONG_SHARING)
	$(GO_TEST) -count=1 -timeout 40m -tags long -run '$(OLDEST_KEDA)' ./test/suite/keda -args -oldest
	$(GO_TEST) -count=1 -timeout 40m ./test/suite/smoke -args -oldest
	$(GO_TEST) -count=1 -p 1 -timeout 30m -tags long -run '$(LONG_TESTS)' $(LONG_ALONE)
	go test -C test/suite/scheduler -v -count=1 -vet=off -timeout 40m . -args -worlds 20000

.PHONY: controlplane
controlplane: ## Build etcd, Kubernetes and kwok into .cache (minutes once, then nothing)
	go run ./test/env/controlplane/cmd/controlplane build

.PHONY: moto
moto: ## Install moto, which plays AWS, into .cache (seconds once, then nothing; needs Python 3.10 or later)
	go run ./test/env/aws/cmd/moto

.PHONY: watt
watt: ## Install Watt and its Node.js into .cache (half a minute once, then nothing; needs npm, and Linux)
	go run ./test/suite/nodejs/cmd/watt

.PHONY: monitoring
monitoring: ## Build Prometheus, promtool and metrics-server into .cache (minutes once, then nothing)
	go run ./test/env/monitoring/cmd/monitoring

.PHONY: build
build: ## Build the foresail command into bin/ (without -trimpath, so that it shares what the demo and the tests have compiled)
	go build -ldflags "-X github.com/foresail/foresail/internal/cli.release=$(VERSION)" -o bin/foresail ./cmd/foresail

.PHONY: reproducible
reproducible: ## Build the command twice, in two folders and without a shared cache, and compare the results (20 minutes)
	@rm -rf out/reproducible && mkdir -p out/reproducible
	@for copy in a b; do \
	  mkdir out/reproducible/$$copy out/reproducible/$$copy.cache; \
	  git archive HEAD | tar -xf - -C out/reproducible/$$copy; \
	  (cd out/reproducible/$$copy && GOCACHE=$$PWD.cache $(BUILD) -buildvcs=false -o ../$$copy.bin ./cmd/foresail); \
	  rm -rf out/reproducible/$$copy out/reproducible/$$copy.cache; \
	done
	sha256sum out/reproducible/a.bin out/reproducible/b.bin
	cmp out/reproducible/a.bin out/reproducible/b.bin

PUSH ?=
.PHONY: image
image: announce-image $(IMAGE_PLATFORMS:%=out/bin/%/foresail) ## Make the container image out/image without Docker (PUSH=registry.example.com/foresail:v1 pushes it too)
	$(RELEASE)/image --version $(VERSION) --revision "$(REVISION)" --out $(CURDIR)/out/image $(if $(PUSH),--push $(PUSH)) \
	  $(IMAGE_PLATFORMS:%=$(CURDIR)/out/bin/%/foresail)

.PHONY: announce-image
announce-image:
	@echo "make image: builds Foresail for each platform (9 minutes the first time on two cores, then seconds)" >&2

# The go command knows what has changed.
out/bin/%: always
	GOOS=$(word 1,$(subst /, ,$*)) GOARCH=$(word 2,$(subst /, ,$*)) $(BUILD) -o $@ ./cmd/foresail

.PHONY: always
always:

PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# The binary of each platform: that of Windows has an extension.
BINARIES = $(foreach p,$(PLATFORMS),out/bin/$(p)/foresail$(if $(filter windows/%,$(p)),.exe))

.PHONY: dist
dist: $(BINARIES) ## Make what a release publishes beside the image, in out/dist: install.yaml, the chart, archives, checksums (PLATFORMS= makes no archives, each of which is a build of minutes)
	$(RELEASE) --root $(CURDIR) --version $(VERSION) --image $(CURDIR)/out/image --out $(CURDIR)/out/dist $(BINARIES:%=$(CURDIR)/%)

.PHONY: release-dry-run
release-dry-run: image dist ## Make all of a release and publish nothing (more than an hour the first time on two cores: it builds for six platforms): docs/releasing.md
	go test -C internal/tools/release -count=1 -tags long ./image
	cd out/dist && sha256sum --check --quiet SHA256SUMS
	@ls -l out/dist

.PHONY: bench
bench: bench-get ## Run the quick benchmarks, in the form that benchstat reads (an hour)
	go test -run '^$$' -bench . -benchmem -count 6 ./pipeline/... ./adapter/... ./nodepool/... ./internal/...

.PHONY: bench-get
bench-get: ## Compare reads through the aggregator with the library's test adapter, three times (half an hour; part of bench)
	go test -run '^$$' -bench AggregatedGet -benchtime 3x -timeout 2h ./test/bench/scale

.PHONY: bench-nodepool
bench-nodepool: controlplane moto ## Measure pools of workers: forecasts, ticks, reactions (20 minutes)
	go test -count=1 -v -run Compare ./test/bench/poolbench -args -long
	go test -run '^$$' -bench Tick -benchtime 20x -cpu 1 -timeout 30m ./test/bench/poolbench
	go test -run '^$$' -bench 'Reaction|Ramp' -benchtime 1x -timeout 30m ./test/bench/poolbench

.PHONY: bench-scheduler
bench-scheduler: ## Measure the answers of nodepool/cluster/scheduling next to those of kube-scheduler's plugins, at 1,000 nodes and 30,000 pods (5 minutes)
	go test -C test/suite/scheduler -vet=off -run '^$$' -bench . -timeout 30m

.PHONY: bench-extender
bench-extender: controlplane ## Measure the scheduler extender: memory, answers, throughput of a real scheduler (20 minutes)
	go test -run '^$$' -bench . -benchtime 1x -timeout 1h -v ./test/bench/extenderbench

SPAN ?= 2m
.PHONY: bench-scale
bench-scale: ## Measure a whole Foresail at 100,000 pods, each size for SPAN (an hour, 8 GB of memory)
	go test -run '^$$' -bench 'RemoteWrite|Pods' -benchtime 1x -timeout 3h ./test/bench/scale -args -span $(SPAN)

.PHONY: bench-watches
bench-watches: ## Measure a process with all parts that follows 5,000 nodes and 150,000 pods, with watches of each part and with shared ones (8 minutes)
	go test -run '^$$' -bench Watches -benchtime 1x -timeout 30m ./internal/cli/serve

LIVE ?=
.PHONY: bench-nodes
bench-nodes: controlplane ## Play a ramp to a real Karpenter, with and without CapacityBuffers, and to a WorkerPool (7 minutes; NODES="-slow 4" for a slower one; FIGURES="nodes slow-nodes" keeps both for the docs)
	go test -vet=off -timeout 30m -tags long -run '^$$' -bench Ramp -benchtime 1x ./test/bench/karpenter -args $(NODES)

.PHONY: bench-karpenter
bench-karpenter: controlplane ## Play a ramp, day and night, batch jobs, spikes and two recorded arrivals to a real Karpenter and to WorkerPools at once (33 minutes; LOADS="-loads spikes"; FIGURES=karpenter keeps them for the docs)
	go test -vet=off -timeout 45m -tags long -run '^$$' -bench Loads -benchtime 1x ./test/bench/karpenter -args $(LOADS)

.PHONY: bench-karpenter-suite
bench-karpenter-suite: controlplane ## Play 1,000 pods at once, their consolidation and a spread over nodes to a real Karpenter and to WorkerPools, in turn (20 minutes)
	go test -vet=off -timeout 90m -tags long -run '^$$' -bench Suite -benchtime 1x ./test/bench/karpenter

.PHONY: bench-live
bench-live: controlplane monitoring ## Play the paper's loads to real HPAs, KEDA's included, in real time (50 minutes; LIVE="--scalers keda" and the like)
	go run ./test/bench/live $(LIVE)

FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME
	@failed=0; for pkg in $$(go list ./pipeline/... ./adapter/... ./nodepool/... ./internal/... ./cmd/... ./api/...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$pkg || failed=1; \
	  done; \
	done; exit $$failed

.PHONY: generate
generate: ## Generate deep copies, CRDs, the protocol of KEDA, PrometheusRules, and the schema of the chart's values
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=manifests/crds
	go run ./internal/crddefaults
	go run -C internal/tools/protogen . $(CURDIR)/adapter/door/keda/externalscaler externalscaler.proto
	$(RELEASE)/chart $(CURDIR)/manifests/chart/foresail
	@for file in manifests/alerts/*.yaml; do \
	  name=$$(basename $$file .yaml); \
	  { echo "# Generated from $$file by make generate."; \
	    printf '%s\n' 'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata:' "  name: $$name" '  namespace: foresail-system' \
	      '  labels: {app.kubernetes.io/part-of: foresail}' 'spec:'; \
	    sed -e '/^#/d' -e 's/^./  &/' $$file; \
	  } > manifests/components/prometheus-operator/rules-$$name.yaml; \
	done

.PHONY: docs
docs: ## Write the generated sections of the documentation
	FORESAIL_UPDATE_DOCS=1 go test -count=1 -run Generated ./docs ./internal/cli/... ./test/suite/permissions

FIGURES ?= paper
.PHONY: figures
figures: ## Measure the figures of the docs (FIGURES="paper others ablations": minutes; size: half an hour; those of traces need FORESAIL_TRACES)
	go run ./internal/docpages/measure $(FIGURES)

.PHONY: verify-docs
verify-docs: ## Fail if the generated sections of the docs are not up to date
	go test -run Generated ./docs ./internal/cli/... ./test/suite/permissions

.PHONY: lint
lint: ## Run golangci-lint (builds it the first time, which takes minutes), actionlint over the workflows, and the lint of words
	$(TOOL) actionlint -shellcheck= -pyflakes=
	$(LINT) run ./...
	$(WORDS) $(CURDIR)

.PHONY: words
words: ## Print what the lint of words finds in each folder, also in those that internal/tools/words/notyet.txt names
	@$(WORDS) -count $(CURDIR)

.PHONY: verify
verify: generate verify-docs ## Fail if generated files are not up to date, or code is not formatted
	git diff --exit-code -- api manifests/crds manifests/chart manifests/components/prometheus-operator adapter/door/keda/externalscaler
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }

.PHONY: clean
clean: ## Remove what was built, the control plane included
	rm -rf bin out .cache
