# Everything a newcomer needs is here; Go and git are enough for all but e2e,
# which installs what it needs (see deploy/lab).
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
HELM := helm.sh/helm/v3/cmd/helm@v3.17.0
GOTESTSUM := gotest.tools/gotestsum@v1.13.0
# How tests that failed are run once more, at most so many of them.
RERUN = $(if $(AGAIN),--rerun-fails=1 --rerun-fails-max-failures=$(AGAIN))
# Tests of packages with some flags.
GOTEST = $(if $(AGAIN),$(GO) run $(GOTESTSUM) --format standard-quiet $(RERUN) --packages '$(1)' -- $(2),$(GO) test $(2) $(1))
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
FUZZTIME ?= 20s
BENCH ?= .
COUNT ?= 1
BASE ?= HEAD~1
LOAD_FOR ?= 20s
HOSTILE ?= 100
SIM_SEED ?= 0
SIM_FOR ?= 10m
SIM_WORLDS ?= 0
FORGE ?= github
ONCE ?= --once
MUTANTS ?= .
MUTANT_WORLDS ?= 1000
PKG ?= internal/promotion
N ?= 100
SEED ?= 1
SIM ?= 0
SIM_ONLY ?= 0
CRASH ?= .
CRASH_SEED ?= 1
KILLS ?= 1000
STORIES ?= .
SHORT ?= -short
SCAN ?= package
# Where goroutines share memory all the time. RACE=./... is every room.
RACE ?= ./internal/argocd/... ./internal/cache ./internal/controller ./internal/controller/act ./internal/controller/facts/... \
	./internal/controller/gateclient ./internal/controller/registry ./internal/controller/wake ./internal/forge/rest \
	./internal/git ./internal/cache/lock ./internal/notify ./internal/store/... ./webhooks/...
# Of the server's stories, which walk the same code again and again, those in which most
# happens at once.
RACE_SERVER ?= ManyAtOnce|Deliver|Connections|Clients|Strangers|Story$$|TestBatch$$|Questions|Notifications|GateCallbacks|TestIncident$$|OutOfReach|AtStart|Flaky|Again$$|Live
# Also in a clone that belongs to somebody else: its Makefile is trusted already.
GIT := git -c safe.directory='$(CURDIR)'
# What a build says of itself (liftlock version). The date is the commit's, so that a build
# made again is the same.
# A commit is cut to twelve digits, not to as many as this clone needs.
VERSION ?= $(shell $(GIT) describe --tags --always --dirty --abbrev=12 2>/dev/null || echo dev)
COMMIT ?= $(shell $(GIT) rev-parse HEAD 2>/dev/null)
DATE ?= $(shell TZ=UTC $(GIT) log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
BUILD := -X github.com/liftlock/liftlock/internal/cli.version=$(VERSION) -X github.com/liftlock/liftlock/internal/cli.commit=$(COMMIT) -X github.com/liftlock/liftlock/internal/cli.date=$(DATE)
OUT ?= bin/liftlock
PLATFORMS ?= darwin-amd64 darwin-arm64 linux-amd64 linux-arm64 windows-amd64 windows-arm64
DIST ?= dist
# What make dist builds goes by these alone, whatever the environment says.
export GOAMD64 := v1
export GOARM64 := v8.0
# What compiles fastest: a newcomer's first minutes go by that. QUICK= compiles as go test does.
QUICK ?= -gcflags='all=-l -dwarf=false'
# Clients and types that were generated, which no hot path goes through, are compiled without
# inlining, and functions begin at every eighth byte: 5 MB less. SMALL= compiles as go test
# does, so that nothing is compiled twice.
GENERATED := k8s.io/api k8s.io/kubernetes k8s.io/kubectl k8s.io/apiextensions-apiserver k8s.io/client-go/applyconfigurations k8s.io/client-go/kubernetes \
	github.com/aws/aws-sdk-go github.com/microsoft/azure-devops-go-api github.com/gfleury github.com/ktrysmt github.com/google/go-github
SMALL ?= -trimpath $(foreach p,$(GENERATED),-gcflags=$(p)/...=-l)
# No C anywhere: a library that we render with imports Go's package plugin, and with cgo that
# makes the linker keep, and export, every function of every package.
export CGO_ENABLED ?= 0
# The toolchain that go.mod names, also where an older one is installed or the environment says
# local, as Go's own images do: what is tested and released has the fixes of its standard library.
export GOTOOLCHAIN := auto
# The random tests draw the same cases on every run, so that a change is judged
# by what it changed; RAPID_SEED=0 draws new ones.
export RAPID_SEED ?= 20261121

.DEFAULT_GOAL := help

.PHONY: help
help: ## print what can be done
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## tell the main job as a story, on embedded parts (FORGE=github or gitlab; ONCE=: and keep the console open, with something left to do)
	@GO='$(GO)' deploy/demo bin/liftlock-demo $(QUICK) -ldflags '-s -w' -- $(ONCE) --forge $(FORGE)

.PHONY: test
test: ## run the tests (TIMES=FILE: keep how long each took there, and tell what took longest; AGAIN=3: run up to three that fail once more, alone)
ifdef TIMES
	@failed=0; $(GO) run $(GOTESTSUM) --format standard-quiet --jsonfile '$(TIMES)' $(RERUN) $(if $(AGAIN),--rerun-fails-report '$(TIMES).again') \
		--packages ./... -- -timeout 30m | tee '$(TIMES).log' || failed=$$?; \
	if [ -s '$(TIMES).again' ]; then echo 'these failed at first, beside the others; one that passes alone is a fault to mend too:'; cat '$(TIMES).again'; fi; \
	echo 'the rooms whose tests took longest, in seconds:'; \
	awk '($$1 == "ok" || $$1 == "FAIL") && $$3 ~ /s$$/ {printf "%8.1f %s\n", $$3, $$2}' '$(TIMES).log' | sort -rn | sed -n 1,20p; \
	echo 'the ten slowest tests:'; \
	$(GO) run $(GOTESTSUM) tool slowest --jsonfile '$(TIMES)' --num 10; \
	exit $$failed
else
	$(GO) test -timeout 30m ./...
endif

.PHONY: race
race: ## run the tests of what several goroutines share with the race detector, in short form (RACE=./... SHORT= RACE_SERVER=.: everything; AGAIN=3 as for test)
	CGO_ENABLED=1 $(call GOTEST,$(RACE),-race $(SHORT) -timeout 30m)
	CGO_ENABLED=1 $(call GOTEST,./internal/server,-race $(SHORT) -timeout 30m -run '$(RACE_SERVER)')

.PHONY: crash
crash: ## kill the server at every point of the story and at random, and three replicas with their PostgreSQL 1,000 times (an hour; CRASH=ReplicasKilled KILLS=1000 CRASH_SEED=1)
	$(GO) test ./internal/world/emulator/story -count=1 -timeout 120m -v -long -run '$(CRASH)' -kills $(KILLS) -seed $(CRASH_SEED)

.PHONY: stories
stories: ## tell the emulator's stories and the server's, kills and a lost database included, on one face of the forge (FORGE=github, github-app or gitlab)
	FORGE=$(FORGE) $(GO) test ./internal/world/emulator/story ./internal/server -count=1 -timeout 60m

.PHONY: sim
sim: ## simulate the whole service under faults, a world a seed (SIM_SEED=, SIM_FOR=10m or SIM_WORLDS=; SIM_HONEST=1: nobody goes past the service; SIM_FOR=0: tell the story of SIM_SEED)
	$(GO) test ./internal/world/sim -count=1 -timeout 0 -run '^TestSimulation$$' -v -sim.seed $(SIM_SEED) -sim.for $(SIM_FOR) -sim.worlds $(SIM_WORLDS) $(if $(filter 1,$(SIM_HONEST)),-sim.honest)

.PHONY: sim-mutants
sim-mutants: ## plant small bugs into the service and see that the simulation finds each (MUTANTS=regexp MUTANT_WORLDS=1000)
	$(GO) test ./internal/world/sim -count=1 -timeout 0 -run '^TestMutants$$' -v -sim.mutants '$(MUTANTS)' -sim.worlds $(MUTANT_WORLDS)

.PHONY: mutants
mutants: ## change a package's code at random, and count what its own tests notice, and the simulation of the rest, or of all (PKG=internal/promotion N=100 SEED=1 SIM=1m or SIM_ONLY=100)
	$(GO) test ./internal -count=1 -timeout 0 -run '^TestMutants$$' -v -mutants '$(PKG)' -mutants.n $(N) -mutants.seed $(SEED) -mutants.sim $(SIM) -mutants.simulation $(SIM_ONLY)

.PHONY: load
load: ## send webhooks as fast as they are taken, with a kill in the middle, and among strangers (LOAD_FOR=20s)
	$(GO) test ./internal/server -count=1 -timeout 20m -run '^TestLoad' -v -load $(LOAD_FOR)

.PHONY: hostile
hostile: ## send hostile pull requests to a server in a cgroup of 2 GiB, twice, with a restart between (HOSTILE=100; wants root, and an hour or two)
	$(GO) test ./internal/server -count=1 -timeout 0 -run '^TestHostilePulls$$' -v -long -hostile $(HOSTILE)

.PHONY: build
build: ## build bin/liftlock, static and stripped, the same bytes from the same commit (GOOS= GOARCH= OUT=)
	$(GO) build $(SMALL) -buildvcs=false -ldflags '-s -w -funcalign=8 -buildid= $(BUILD)' -o $(OUT) ./cmd/liftlock

.PHONY: dist
dist: ## build what a release has into dist: programs, completions, man pages, checksums, bills of materials, formula (PLATFORMS= DIST=)
	@rm -rf bin/dist
	@for p in $(PLATFORMS); do \
	  suffix=; case $$p in windows-*) suffix=.exe;; esac; \
	  echo "building for $$p" >&2; \
	  GOOS=$${p%-*} GOARCH=$${p#*-} $(MAKE) --no-print-directory -s build OUT="bin/dist/$$p/liftlock$$suffix"; \
	done
	@$(GO) run $(SMALL) ./deploy/dist -programs bin/dist -out '$(DIST)' -modules "$$($(GO) env GOMODCACHE)" \
	  -version '$(VERSION)' -commit '$(COMMIT)' -date '$(DATE)'
	@ls -l '$(DIST)'

.PHONY: dist-twice
dist-twice: ## make dist, and again in a clone elsewhere; fail where a byte differs (PLATFORMS= COLD=1: compile all anew)
	PLATFORMS='$(PLATFORMS)' deploy/dist/twice

.PHONY: image
image: ## build the OCI image into bin/image and tell the demo in it (needs mmdebstrap, and root or sudo; ARCH=arm64 LAYOUT=folder)
	deploy/image/build

.PHONY: lint-install
lint-install: ## check the chart with helm lint and the workflows with actionlint
	$(GO) run $(HELM) lint --strict deploy/chart
	$(GO) run $(HELM) lint --strict deploy/chart --values deploy/chart/ci/postgres.yaml
	$(GO) run $(ACTIONLINT) -shellcheck= -pyflakes=

.PHONY: vet
vet: ## run go vet, also on the end-to-end suite
	$(GO) vet ./...
	$(GO) vet -tags e2e ./internal/e2e/...

.PHONY: lint
lint: ## run staticcheck
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags e2e ./internal/e2e/...

.PHONY: vuln
vuln: ## fail where the program links something with a known hole that deploy/vulncheck/allowed.yaml doesn't let be (SCAN=symbol: also what of it is called, in 24 GB of memory)
	$(GO) run ./deploy/vulncheck -scan $(SCAN)

.PHONY: fmt-check
fmt-check: ## fail when a file isn't formatted
	@files=$$($(GIT) ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 gofmt -l); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

.PHONY: bench
bench: ## run the benchmarks (BENCH=regexp COUNT=10, for benchstat)
	$(GO) test ./... -run '^$$' -bench '$(BENCH)' -benchmem -timeout 120m -count $(COUNT)

.PHONY: bench-compare
bench-compare: ## compare looks, plans and resolving with another commit, by turns: at most 1.1 times of it (BASE=HEAD~1 COUNT=3)
	BENCH= COUNT=$(COUNT) .ci/bench-compare $(BASE)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME each
	@$(GO) list -f '{{.ImportPath}}' ./... | while read -r pkg; do \
	  $(GO) test -list '^Fuzz' "$$pkg" | { grep '^Fuzz' || true; } | while read -r f; do \
	    echo "== $$pkg $$f"; $(GO) test "$$pkg" -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x; \
	  done; \
	done

.PHONY: e2e
e2e: ## tell the stories in a real world: Kubernetes, Argo CD, Gitea (builds them first, about 15 minutes; ARGOCD=v3.5.7 or v3.2.11: on that one; STORIES=regexp; AGAIN=3 as for test)
	AGAIN='$(AGAIN)' GOTESTSUM='$(GOTESTSUM)' deploy/lab/e2e -run '$(STORIES)'

.PHONY: lab-up
lab-up: ## start the real world and leave it running
	deploy/lab/lab build
	deploy/lab/lab up

.PHONY: lab-down
lab-down: ## stop it
	deploy/lab/lab down
