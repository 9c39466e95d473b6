// Package troupetest tests flows within Go's own tests: a task is played in virtual time, so that a
// flow of three weeks takes less than a millisecond, without a server and without a store.
//
//	f := troupetest.New(t, definition)
//	f.Mock("charge", troupetest.Fails("declined").Times(2).Then(troupetest.Returns(map[string]any{"id": "c1"})))
//	f.At("2d").Approve("approve")
//	r := f.Run(map[string]any{"order": 7})
//	require.Equal(t, "completed", r.State)
//
// What is mocked is named by its node, or by its service or function. Handlers of yours may answer
// as well (Handler, Func); they are called in the test's own goroutine, one after the other.
//
// Seeds plays the same under misfortunes: results, signals and crashes in another order, reports
// that come twice, calls that fail. What is given to it has to hold in every one of these stories;
// the first one in which it does not is made as small as it can be before it is told. The
// environment variable TROUPETEST_SEED=N plays the seed N alone.
//
// File plays the cases of a file, which troupe flow test reads, too.
package troupetest
