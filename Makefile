# Commands for this repository, used by developers and by CI.

TESTFLAGS ?=
RACE ?=
# These packages take minutes. By name they would start last and then run alone, so they start
# first.
PACKAGES ?= ./persistence/postgres ./internal/testing/faults ./sdk ./...
FUZZTIME ?= 1m
SEEDS ?= 10000
KILLS ?= 100
N ?= 50
CONTAINERS ?=
SEED ?=
COUNT ?= 30
EACH ?= 300
TOTAL ?= 14400
FLAKY ?=
BENCHFLAGS ?=
BASE ?=
ROUNDS ?= 3
QUICK ?=
BEYOND ?= 1.15

# The race detector sees only Go's own memory. SQLite is C translated to Go, with memory of its own.
# Instrumenting it would find nothing and make it ten times as slow. Its driver, which is Go, is
# instrumented.
unseen := modernc.org/libc/... modernc.org/sqlite/lib
racing := $(if $(RACE),-race $(unseen:%=-gcflags=%=-race=false))

# Everything is built with the same settings: without cgo, which only the race detector needs, and
# without local paths. So the build cache is shared with tests that build our programs, and with
# other copies of the sources.
export CGO_ENABLED := $(if $(RACE),1,0)
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

# Many tests mostly wait, so more packages are tested at once than there are processors. With the
# race detector they wait less.
at_once := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) $(if $(RACE),+ 1,* 2))))

# Tests start Python some hundred times. If python3 is a script that searches for the real one, each
# start takes an extra tenth of a second.
python := $(shell python3 -c 'import os, sys; own = os.path.dirname(sys.executable); print(own if own != os.path.dirname(sys.argv[1]) else "")' "$$(command -v python3)" 2>/dev/null)
export PATH := $(if $(python),$(python):)$(PATH)

.PHONY: test race flaky lint words cross vuln generate generated fuzz sim crash faults attack bench bench-compare bench-guard curves where release deploy cloud live-cloudrun live-kubernetes postgres containers ui ui-check ui-shots ui-bench

## The whole suite, or PACKAGES of it, on both stores, with RACE=1 under the race detector. It
## starts a PostgreSQL server of its own and prints its progress while nothing else is printed.
test: postgres
	@scripts/test.sh -timeout $(if $(RACE),30m,20m) -p $(at_once) $(racing) $(TESTFLAGS) $(PACKAGES)

## The suite under the race detector.
race:
	@$(MAKE) --no-print-directory test RACE=1

## Flaky tests: all packages, or those of FLAKY, up to COUNT times each beside busy loops, within
## TOTAL seconds.
flaky: postgres
	@COUNT=$(COUNT) EACH=$(EACH) TOTAL=$(TOTAL) RACE=$(RACE) scripts/flaky.sh $(FLAKY)

## Formatting and mistakes found by linters.
lint:
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l); \
	[ -z "$$files" ] || { echo "Not formatted (gofmt -w):"; echo "$$files"; exit 1; }
	@go vet ./...
	@go vet -tags containers ./internal/testing/containers
	@go vet -tags troupe_next ./flow
	@go tool staticcheck ./...
	@go tool staticcheck -tags containers ./internal/testing/containers
	@go tool revive -config revive.toml -set_exit_status ./...

## Builds for platforms that are not tested here. Files for Windows are also vetted on Windows,
## where their tests run.
cross:
	@GOOS=windows GOARCH=amd64 go build ./...
	@GOOS=windows GOARCH=amd64 go vet ./api ./internal/child ./persistence/sqlite
	@GOOS=darwin GOARCH=arm64 go build ./...

## Known vulnerabilities in reachable code of our dependencies.
vuln:
	@scripts/vuln.sh

## Static binaries for all platforms in dist/, with their checksums. VERSION is set by git describe
## unless it is given.
release:
	@scripts/release.sh

## Checks of deploy, without Docker and Kubernetes. It is a module of its own, so that its
## dependencies are not ours. Go does not notice changes outside a module, so nothing is taken from
## the cache.
deploy:
	@scripts/systemd.sh
	@cd deploy/test && go vet ./... && go test -count=1 $(TESTFLAGS) ./...

## Checks of troupe-cloud, also a module of its own, with fake clouds. It also checks that troupe
## itself has not grown.
cloud: postgres
	@TESTFLAGS="$(TESTFLAGS)" scripts/cloud.sh

## The same with real clouds, for testers with an account: PROJECT, REGION and JOB of Cloud Run;
## NAMESPACE of Kubernetes.
live-cloudrun live-kubernetes:
	@cd cloud && go test -tags live -count=1 -v -run $(if $(filter live-cloudrun,$@),LiveCloudRun,LiveKubernetes) ./cmd/troupe-cloud

generate:
	@go generate ./...

## Every public word (fields, schemas, summaries, flags, help, metrics, log keys, texts of the
## pages) in one file, api/v1/words.txt.
words:
	@go generate ./internal/tools/words

generated:
	@scripts/generated.sh

## Every Fuzz target, for FUZZTIME each.
fuzz:
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

## The simulator over SEEDS seeds with one member, and half as many with clusters.
sim:
	@TROUPE_SIM_SEEDS=$(SEEDS) scripts/long.sh sim internal/testing/sim go test -count=1 -timeout 0 ./internal/testing/sim

## End to end, with KILLS processes killed by SIGKILL, and as many kills while jobs of Cloud Run are
## running. CONTAINERS=1 adds running containers.
crash: postgres
	@[ -z "$(CONTAINERS)" ] || scripts/containers.sh
	@PATH="$$PATH:/usr/sbin:/sbin" TROUPE_ERRANDS_CONTAINERS=$(CONTAINERS) TROUPE_CRASH_KILLS=$(KILLS) scripts/long.sh crash internal/testing/e2e go test -count=1 -timeout 0 -v -run Crash ./internal/testing/e2e
	@cd cloud && TROUPE_CLOUD_KILLS=$(KILLS) go test -count=1 -timeout 0 -v -run 'NeitherDuplicateNorLose|TakesExecutionsOver' ./cmd/troupe-cloud

## Members on hosts of their own, with N faults in a row: kills, freezes, cut links, restarts.
## SEED=… repeats a run. CONTAINERS as above.
faults: postgres
	@[ -z "$(CONTAINERS)" ] || scripts/containers.sh
	@PATH="$$PATH:/usr/sbin:/sbin" TROUPE_ERRANDS_CONTAINERS=$(CONTAINERS) TROUPE_FAULTS=$(N) TROUPE_FAULTS_SEED=$(SEED) scripts/long.sh faults internal/testing/faults go test -count=1 -timeout 0 -v ./internal/testing/faults

## Attacks, one after the other and all at once, with limits of memory and time.
attack: postgres
	@TROUPE_ATTACK=full scripts/long.sh attack internal/testing/attack go test -count=1 -timeout 0 -v ./internal/testing/attack

## Containers, on a private container host: podman and runc. It reports what is missing if none can
## run.
containers: postgres
	@scripts/containers.sh
	@PATH="$$PATH:/usr/sbin:/sbin" go test -count=1 -timeout 20m -tags containers $(TESTFLAGS) ./internal/testing/containers

## The pages, built from api/ui/src into api/ui/dist, which is committed. So node is needed only to
## change them.
ui:
	@scripts/ui.sh build

## Checks that the committed pages match their sources, are small enough, and work in a browser.
ui-check:
	@scripts/ui.sh check

## The pictures of the pages in docs/images.
ui-shots:
	@scripts/ui.sh shots

## The cost of large tasks in a browser.
ui-bench:
	@scripts/ui.sh bench

## The load generator, e.g. make bench BENCHFLAGS='-workload chain'.
bench: postgres
	@if [ -d cmd/bench ]; then go run ./cmd/bench $(BENCHFLAGS); else echo "There is no cmd/bench yet."; fi

## Compares this tree with another one, alternately: BASE is a commit, ROUNDS the number of rounds,
## and QUICK=1 takes some minutes. It fails if a step takes more than BEYOND times as much CPU time,
## of the member or of PostgreSQL.
bench-compare: postgres
	@[ -n "$(BASE)" ] || { echo "Which commit is it to be compared with? make bench-compare BASE=HEAD~1"; exit 2; }
	@QUICK=$(QUICK) BEYOND=$(BEYOND) scripts/beside.sh $(BASE) $(ROUNDS)

## The same in about two minutes, compared with the commit on which this tree is based, if there is
## one.
bench-guard: postgres
	@base=$${BASE:-$$(scripts/base.sh)}; [ -z "$$base" ] || QUICK=1 BEYOND=$(BEYOND) scripts/beside.sh "$$base" $(ROUNDS)

## The cost of a step as work grows, measured and drawn in docs/explanation/performance in a quarter of an hour;
## QUICK=1 takes about two minutes.
curves: postgres
	@QUICK=$(QUICK) scripts/curves.sh

## The parts of a step's time, as the tables of docs/explanation/performance.md.
where: postgres
	@QUICK=$(QUICK) scripts/where.sh

postgres:
	@scripts/postgres.sh
