# What is done with this repository, by people and by CI alike.

TESTFLAGS ?=
RACE ?=
# These take minutes and would be begun last, by their names, and then be all that is under way: so they are begun first.
PACKAGES ?= ./persistence/postgres ./internal/faults ./sdk ./...
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

# The race detector sees Go's own memory alone. SQLite is C that was translated to Go, with memory of its own, so it would be looked at for nothing,
# and be ten times as slow; its driver, which is Go, is looked at.
unseen := modernc.org/libc/... modernc.org/sqlite/lib
racing := $(if $(RACE),-race $(unseen:%=-gcflags=%=-race=false))

# All that is built here is built alike, without cgo, which only the race detector needs, and with no paths of this machine: so it is not built again
# by whoever builds it elsewhere, as tests do with our programs, or in another copy of the sources.
export CGO_ENABLED := $(if $(RACE),1,0)
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

# Many tests wait, so more packages are tested at once than there are processors; under the race detector they wait less.
at_once := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) $(if $(RACE),+ 1,* 2))))

# Tests begin Python some hundred times. Where python3 is a script that looks for the real one, that takes a tenth of a second each time.
python := $(shell python3 -c 'import os, sys; own = os.path.dirname(sys.executable); print(own if own != os.path.dirname(sys.argv[1]) else "")' "$$(command -v python3)" 2>/dev/null)
export PATH := $(if $(python),$(python):)$(PATH)

.PHONY: test race flaky lint words cross vuln generate generated fuzz sim crash faults attack bench bench-compare bench-guard curves where release deploy cloud live-cloudrun live-kubernetes postgres containers ui ui-check ui-shots ui-bench

## The whole suite, or PACKAGES of it, on both stores, with RACE=1 under the race detector. It starts a PostgreSQL server of its own and
## prints how far it is while nothing else is printed.
test: postgres
	@scripts/test.sh -timeout $(if $(RACE),30m,20m) -p $(at_once) $(racing) $(TESTFLAGS) $(PACKAGES)

## The same under the race detector.
race:
	@$(MAKE) --no-print-directory test RACE=1

## Tests that fail by chance: all packages, or those of FLAKY, up to COUNT times each beside busy loops, within TOTAL seconds.
flaky: postgres
	@COUNT=$(COUNT) EACH=$(EACH) TOTAL=$(TOTAL) RACE=$(RACE) scripts/flaky.sh $(FLAKY)

## Form and mistakes that programs can find.
lint:
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l); \
	[ -z "$$files" ] || { echo "Not formatted (gofmt -w):"; echo "$$files"; exit 1; }
	@go vet ./...
	@go tool staticcheck ./...
	@go tool revive -config revive.toml -set_exit_status ./...

## Does it build where it is not tested? The files for Windows alone are vetted where their tests run there, too.
cross:
	@GOOS=windows GOARCH=amd64 go build ./...
	@GOOS=windows GOARCH=amd64 go vet ./api ./internal/child ./persistence/sqlite
	@GOOS=darwin GOARCH=arm64 go build ./...

## Known vulnerabilities in what we use and reach.
vuln:
	@scripts/vuln.sh

## Static binaries for all platforms in dist/, with their checksums. VERSION is what git describes, unless it is set.
release:
	@scripts/release.sh

## What is in deploy, without Docker and Kubernetes: a module of its own, so that they are no dependencies of ours. Go does not
## notice changes outside of a module, so nothing of it is taken from the cache.
deploy:
	@scripts/systemd.sh
	@cd deploy/test && go vet ./... && go test -count=1 $(TESTFLAGS) ./...

## troupe-cloud, a module of its own likewise, against clouds of our own making; and is troupe itself still as small as it may be?
cloud: postgres
	@TESTFLAGS="$(TESTFLAGS)" scripts/cloud.sh

## The same against real ones, for who has an account: PROJECT, REGION and JOB of Cloud Run; NAMESPACE of Kubernetes.
live-cloudrun live-kubernetes:
	@cd cloud && go test -tags live -count=1 -v -run $(if $(filter live-cloudrun,$@),LiveCloudRun,LiveKubernetes) ./cmd/troupe-cloud

generate:
	@go generate ./...

## Every public word (fields, schemas, summaries, flags, help, metrics, log keys, texts of the pages) in one file, api/v1/words.txt.
words:
	@go generate ./internal/words

generated:
	@scripts/generated.sh

## Every Fuzz target, FUZZTIME each.
fuzz:
	@FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

## The simulator over SEEDS seeds with one member, and half as many with clusters.
sim:
	@TROUPE_SIM_SEEDS=$(SEEDS) scripts/long.sh sim internal/sim go test -count=1 -timeout 0 ./internal/sim

## End to end, with KILLS processes killed by SIGKILL, and as many with jobs of Cloud Run under way. CONTAINERS=1 has containers under way, too.
crash: postgres
	@[ -z "$(CONTAINERS)" ] || scripts/containers.sh
	@PATH="$$PATH:/usr/sbin:/sbin" TROUPE_ERRANDS_CONTAINERS=$(CONTAINERS) TROUPE_CRASH_KILLS=$(KILLS) scripts/long.sh crash internal/e2e go test -count=1 -timeout 0 -v -run Crash ./internal/e2e
	@cd cloud && TROUPE_CLOUD_KILLS=$(KILLS) go test -count=1 -timeout 0 -v -run 'NeitherDuplicateNorLose|TakesExecutionsOver' ./cmd/troupe-cloud

## Members on hosts of their own, with N faults in a row: kills, freezes, cut links, restarts. SEED=… repeats a run. CONTAINERS as above.
faults: postgres
	@[ -z "$(CONTAINERS)" ] || scripts/containers.sh
	@PATH="$$PATH:/usr/sbin:/sbin" TROUPE_ERRANDS_CONTAINERS=$(CONTAINERS) TROUPE_FAULTS=$(N) TROUPE_FAULTS_SEED=$(SEED) scripts/long.sh faults internal/faults go test -count=1 -timeout 0 -v ./internal/faults

## What an attacker would send, one attack after the other and all at once, with budgets of memory and time.
attack: postgres
	@TROUPE_ATTACK=full scripts/long.sh attack internal/attack go test -count=1 -timeout 0 -v ./internal/attack

## Containers, on a container host of its own: podman and runc. It says what is missing where none can be run.
containers: postgres
	@scripts/containers.sh
	@go vet -tags containers ./internal/containers
	@go tool staticcheck -tags containers ./internal/containers
	@PATH="$$PATH:/usr/sbin:/sbin" go test -count=1 -timeout 20m -tags containers $(TESTFLAGS) ./internal/containers

## The pages for people, built of api/ui/src into api/ui/dist, which is committed: only who changes them needs node.
ui:
	@scripts/ui.sh build

## Is what is committed what the sources build, is it small enough, and do the pages work in a browser?
ui-check:
	@scripts/ui.sh check

## The pictures of the pages in docs/ui.
ui-shots:
	@scripts/ui.sh shots

## What large tasks cost a browser.
ui-bench:
	@scripts/ui.sh bench

## The load generator, e.g. make bench BENCHFLAGS='-workload chain'.
bench: postgres
	@if [ -d cmd/bench ]; then go run ./cmd/bench $(BENCHFLAGS); else echo "There is no cmd/bench yet."; fi

## This tree beside another one, in turn: BASE is a commit, ROUNDS how often, QUICK=1 a look of some minutes. It fails when a step takes
## more than BEYOND times as much CPU, of the member or of PostgreSQL.
bench-compare: postgres
	@[ -n "$(BASE)" ] || { echo "Which commit is it to be compared with? make bench-compare BASE=HEAD~1"; exit 2; }
	@QUICK=$(QUICK) BEYOND=$(BEYOND) scripts/beside.sh $(BASE) $(ROUNDS)

## The same in some two minutes beside the commit that this tree comes from, if there is one.
bench-guard: postgres
	@base=$${BASE:-$$(scripts/base.sh)}; [ -z "$$base" ] || QUICK=1 BEYOND=$(BEYOND) scripts/beside.sh "$$base" $(ROUNDS)

## What a step costs as work grows, measured and drawn in docs/performance in a quarter of an hour; QUICK=1 takes some two minutes.
curves: postgres
	@QUICK=$(QUICK) scripts/curves.sh

## Where each microsecond of a step goes, as the tables of docs/performance.md.
where: postgres
	@QUICK=$(QUICK) scripts/where.sh

postgres:
	@scripts/postgres.sh
