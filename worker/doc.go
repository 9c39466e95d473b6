// Package worker is for programs that carry out jobs.
//
//	w := worker.New(worker.Config{Pull: true})
//	worker.Handle(w, "resize", func(ctx context.Context, in Picture) (Picture, error) { … })
//	err := w.Run(ctx)
//
// Package job says what a function is told, and what it may say. A handler does not know how its
// jobs travel. With Push the worker is an HTTP server that the engine calls; with Pull it asks the
// engine for jobs and works behind any firewall.
//
// Promises: a job's context ends when nobody waits for the job any longer; a handler that panics
// costs its job and nothing else; no more than Concurrency handlers run at once; a result is
// delivered again and again until the engine has answered, so a job may be carried out more than
// once but is never lost; when Run's context ends no new job is begun and those at work may finish
// within Grace; the engine is told that the worker leaves and gets back what was not begun or not
// finished, to give it to somebody else.
package worker
