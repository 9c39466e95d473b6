// Package worker is for programs that carry out jobs.
//
//	w := worker.New(worker.Config{Pull: true})
//	worker.Handle(w, "resize", func(ctx context.Context, in Picture) (Picture, error) { … })
//	err := w.Run(ctx)
//
// Package job describes what a handler receives and returns. A handler does not depend on how its
// jobs arrive. With Push the worker is an HTTP server that the engine calls; with Pull it requests
// jobs from the engine and works behind any firewall.
//
// Promises:
//   - A job's context ends when its result is no longer needed.
//   - A handler that panics fails only its own job.
//   - At most Concurrency handlers run at once.
//   - A result is sent again until the engine has answered, so a job may be carried out more than
//     once but is never lost.
//   - When Run's context ends, no new job starts, and jobs in progress may finish within Grace. The
//     worker deregisters and returns the jobs that were not started or not finished, so that other
//     workers get them.
package worker
