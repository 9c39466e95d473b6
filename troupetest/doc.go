// Package troupetest tests flows within Go's own tests. A task runs in virtual time, so a flow of
// three weeks takes less than a millisecond, without a server and without a store.
//
//	f := troupetest.New(t, definition)
//	charged := troupetest.Returns(map[string]any{"id": "c1"})
//	f.Mock("charge", troupetest.Fails("declined").Times(2).Then(charged))
//	f.At("2d").Approve("approve")
//	r := f.Run(map[string]any{"order": 7})
//	require.Equal(t, "completed", r.State)
//
// A mock is named by its node, or by its service or function. Your own handlers can answer as well
// (Handler, Func); they are called sequentially in the test's own goroutine.
//
// Seeds runs the same task under faults: results, signals and crashes in another order, duplicate
// reports, failing calls. The given check has to hold in every one of these stories. The first
// story in which it fails is reduced to the smallest one before it is reported. The environment
// variable TROUPETEST_SEED=N runs only seed N.
//
// Function tests a durable function, and finds nondeterministic ones (EveryCrash).
//
// File runs the cases of a file in the format of troupe flow test.
package troupetest
