package blackbox

import (
	"testing"
)

// pgflowChecks are the numbered lines of pgflow's compatibility list, and what belongs to them. The
// handlers of steps are the checks themselves: they poll, and complete or fail what they got.
var pgflowChecks = []check{
	{"P1 a root is queued with the run's input, the next step waits", pgRootIsQueued},
	{"P2 a dependent step gets the outputs, the run ends with that of the leaf", pgChain},
	{"P3 inputs may have no run in them", pgShapeDeps},
	{"P4 a join waits for all", pgJoinWaits},
	{"P5 a failed task is tried again after twice as long", pgRetries},
	{"P6 a failed step ends the run, what comes late changes nothing", pgFailureEndsTheRun},
	{"P7 a task that takes too long is tried again or fails", pgTimeouts},
	{"P8 a start may be delayed", pgStartDelay},
	{"P9 no task is handed out twice", pgNoTaskTwice},
	{"P10 a fanout has a task for each item", pgFanout},
	{"P11 outputs are in order of the items", pgOutputsInOrder},
	{"P12 items that are no array fail the fanout", pgItemsMustBeAnArray},
	{"P13 a fanout without items completes at once", pgEmptyFanout},
	{"P14 of a fanout one task is tried again", pgOneTaskIsTriedAgain},
	{"P15 items are appended while the fanout is started", pgAppend},
	{"P16 an append that does not fit is refused", pgAppendIsRefused},
	{"P17 an append is in time or refused, never lost", pgAppendRace},
	{"P18 a direct step is completed by somebody", pgDirect},
	{"P19 direct completions happen once, and to direct tasks alone", pgDirectTwice},
	{"a map over what was skipped has no tasks", pgSkippedMaps},
	{"direct tasks are completed in any order", pgAnyOrder},
	{"a direct task is completed after a cancel", pgAfterCancel},
	{"a direct step has a timeout of its own", pgDirectTimeout},
	{"what fail_fast withdraws is over to /v1", pgWithdrawn},
	{"P19 a task may be named by step and index", pgByStep},
	{"P20 a direct step has no handler", pgNoHandlerForDirect},
	{"P21 others run without a step that is skipped as optional", pgSkippedOptional},
	{"P22 a skip propagates", pgSkippedPropagates},
	{"P23 a skip may be a failure, told by the start", pgSkippedFails},
	{"P24 patterns are contained as in PostgreSQL", pgPatterns},
	{"P25 a fallback runs when there is no object", pgFallback},
	{"P26 a gate skips its whole branch", pgGateSkipsTheBranch},
	{"P27 a condition's handler skips, lets run or fails", pgCond},
	{"P28 a branch without a prep sees what is around it", pgInlineBranch},
	{"P29 an embedded flow gets what its prep returned", pgEmbedded},
	{"P30 branches need a prep for embedded flows, and have fixed slugs", pgBranchNames},
	{"P31 a branch begins in order", pgBranchInOrder},
	{"P32 an output sees every leaf as optional", pgOutput},
	{"P33 names and dependencies are checked", pgRefused},
	{"P34 a paused run starts nothing new", pgPause},
	{"P35 a cancelled run never goes on", pgCancel},
	{"P36 an exhausted step may be skipped", pgExhausted},
	{"P37 a map of no array fails", pgMapOfNoArray},
	{"P38 a map of the run's input needs an array", pgMaps},
	{"P39 events are told in order and once", pgEvents},
	{"P39 somebody waits for a status", pgWaits},
	{"P40 a task survives a kill of the engine", pgKill},
	{"15 a flow is ensured", pgEnsure},
	{"15 of many who ensure a flow at once one makes it", pgEnsureAtOnce},
	{"15 a run may have an id of its client's", pgOwnID},
	{"15 ids and inputs that mean the same are the same", pgSpellings},
	{"15 a claim is prolonged", pgHeartbeat},
	{"15 tasks of a graph in a branch are named behind it", pgGraphInside},
	{"15 a flow is deleted with its runs", pgDeleted},
	{"15 what a deleted flow had of a key others have at once", pgKeyOfADeletedFlow},
	{"15 a flow is deleted with its runs while others use them", pgDeletedMeanwhile},
	{"15 what is refused says what is wrong", pgRefusals},
	{"inputs that a flow does not declare are refused", pgDeclaredInputs},
	{"web pages are told what a route takes", pgMethods},
}

func TestPgflowSQLite(t *testing.T)   { t.Parallel(); runChecks(t, sqliteStore, pgflowChecks) }
func TestPgflowPostgres(t *testing.T) { t.Parallel(); runChecks(t, postgresStore, pgflowChecks) }
func TestPgflowCluster(t *testing.T)  { t.Parallel(); runChecks(t, clusterStore, pgflowChecks) }
