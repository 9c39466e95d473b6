package blackbox

import (
	"testing"
)

// orkChecks are the numbered lines of Ork's compatibility list, and what belongs to them.
var orkChecks = []check{
	{"O1 a task goes from pending to success", orkOne},
	{"O1 every transition is told in order", orkTransitions},
	{"O2 an exit status fails a task", orkExit},
	{"O3 a chain runs in order", orkChain},
	{"O4 what is independent runs at the same time, O5 a join waits for both", orkJoin},
	{"O6 what depends on a failure is skipped, O7 the rest goes on", orkSkips},
	{"O8 a clean-up runs after a failure, O9 after a success, O10 what follows it too", orkCleanUp},
	{"O11 a task is tried again, O12 so often and no more", orkRetries},
	{"O13 a retry waits", orkRetryDelay},
	{"O14 a task that takes too long is ended", orkTimeout},
	{"O19 so many at once, O20 as many as were counted", orkParallel},
	{"O21 one for each item, in order", orkForeach},
	{"O22 only so many at once", orkConcurrency},
	{"O23 no items, O24 what is no list, O25 one of three that fails", orkForeachEnds},
	{"O26 inputs are merged", orkMerged},
	{"O27 inputs are bound", orkBound},
	{"O28 logs grow, and are followed", orkLogs},
	{"O29 the clock starts runs, until that is disabled", orkEachSecond},
	{"O30 what was missed has one run", orkCatchesUp},
	{"O31 a schedule has a time zone", orkZone},
	{"7 a schedule is changed, and replaced with its workflow", orkReschedules},
	{"O32 a cancel lets go on what runs", orkCancel},
	{"O33 a cancel may be forced", orkCancelForced},
	{"O34 a failed run is retried", orkRetry},
	{"O34 one failed task is retried", orkRetryOne},
	{"O35 a run is paused", orkPause},
	{"16 a pending task is paused", orkPauseTask},
	{"O36 a run keeps its version", orkVersions},
	{"O37 what is wrong is refused", orkRefused},
	{"O38 a run survives a kill of the engine", orkKill},
	{"O39 a task waits for work outside", orkDeferred},
	{"O42 a workflow may be one job several times", orkReplicated},
	{"O43 an input may be large", orkLargeInput},
	{"O44 names are kept", orkNames},
	{"O45 an item's source is a dependency", orkImplicit},
	{"O54 an alias makes another version, a folder none", orkAlias},
	{"O46 a task says what went wrong", orkSaysWhy},
	{"O47 functions of Python are tasks", orkPython},
	{"O48 work outside is no output that a type is for", orkDeferredTyped},
	{"O49 what names no work outside", orkDeferredOdd},
	{"O50 a service is asked until it answers", orkDeferredAsks},
	{"O50 a timeout covers the wait", orkDeferredTimeout},
	{"O51 work outside survives a kill of the engine", orkDeferredKill},
	{"O52 work outside is called off", orkDeferredCancel},
	{"O53 a weekday with a number is told", orkWeekday},
	{"O55 what a task prints may be any bytes", orkBytes},
	{"O56 a task sees a stated environment", orkEnvironment},
	{"10.2 what is not done is refused", orkRefusesWhatItCannotDo},
	{"10.4 an output of another type fails", orkOutputType},
	{"14 workflows are listed and deleted", orkWorkflows},
	{"14 runs are listed", orkRuns},
	{"14 a run is started once", orkIdempotent},
	{"14 what is not there is 404", orkMissing},
	{"14 runs of others keep their dialect", orkBesideOthers},
}

func TestOrkSQLite(t *testing.T)   { t.Parallel(); runChecks(t, sqliteStore, orkChecks) }
func TestOrkPostgres(t *testing.T) { t.Parallel(); runChecks(t, postgresStore, orkChecks) }
func TestOrkCluster(t *testing.T)  { t.Parallel(); runChecks(t, clusterStore, orkChecks) }
