package blackbox

import (
	"testing"
)

// check is one numbered line of the compatibility list.
type check struct {
	name string
	run  func(*client)
}

// checks run against every store, all at the same time on one server. A check that needs its own
// server starts one.
var checks = []check{
	{"01 OPTIONS answers 204 with three headers", optionsHasHeaders},
	{"02 an unknown route is 404", unknownRoute},
	{"03 a flow is created and listed", flowIsListed},
	{"04 names of fields may have any case", anyCase},
	{"05 lists come in pages", pages},
	{"06 a wrong method is 405", wrongMethod},
	{"07 a definition comes back as it was sent", definitionVerbatim},
	{"08 a definition may be YAML", definitionYAML},
	{"09 versions answer for missing and unknown ids", versionErrors},
	{"10 a task runs the version asked for, else the newest published one", versionChoice},
	{"11 a definition needs a start, a task a flow", noStart},
	{"12 a new task has every key", newTask},
	{"13 tasks are filtered", taskFilter},
	{"14 unknown tasks are 404, their runs an empty list", unknownTask},
	{"15 logs answer for missing and unknown runs", logErrors},
	{"16 a worker registers and is listed", workerListed},
	{"17 the least loaded worker is allocated", leastLoaded},
	{"18 a silent worker is not there", silentWorker},
	{"19 the registry has short names", shortNames},
	{"20 a task's params win over the node's", taskParamsWin},
	{"21 an input map takes references and literals", inputMap},
	{"22 an unmatched action follows the default edge", defaultEdge},
	{"23 a failure follows the default edge or fails the task", failureEdge},
	{"24 a failed step is tried again", retries},
	{"25 dead workers are passed over", deadWorkers},
	{"26 a choice compares as documented", choices},
	{"27 a parallel keeps the order and fails with a failed branch", parallelCollect},
	{"28 a parallel may continue", parallelContinue},
	{"29 a parallel may fail fast", parallelFailFast},
	{"30 a foreach keeps the order", foreachOrder},
	{"31 a foreach without items succeeds", foreachEmpty},
	{"32 a subflow has a shared state of its own", subflow},
	{"33 a timer waits", timer},
	{"34 a wait ends with a present signal", waitEvent},
	{"35 a wait may time out", waitTimeout},
	{"36 an approval becomes an action", approval},
	{"37 no signal is lost", signals},
	{"38 a cancel ends a task whatever it does", cancels},
	{"39 a queue job waits for a poller", queueWaits},
	{"40 a queue job is completed once", queueCompletes},
	{"41 a queue job may fail, and needs no run id", queueFails},
	{"42 an open approval blocks nobody else", approvalBlocksNobody},
	{"43 a long step is carried out once", longStep},
	{"44 tasks and workers survive a kill", kill},
	{"45 the example flows end as documented", examples},
	{"45 flows like the documented ones end so", documentedFlows},
	{"46 the command-line client works", commandLine},
	{"47 clients work without the prefix", withoutPrefix},
	{"params that a flow does not declare are refused", declaredInputs},
	{"a version is answered with its warnings", versionWarned},
}

func TestSQLite(t *testing.T)   { t.Parallel(); runChecks(t, sqliteStore, checks) }
func TestPostgres(t *testing.T) { t.Parallel(); runChecks(t, postgresStore, checks) }
func TestCluster(t *testing.T)  { t.Parallel(); runChecks(t, clusterStore, checks) }

func runChecks(t *testing.T, kind storeKind, checks []check) {
	s := startServer(t, kind)
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newClient(t, s))
		})
	}
}
