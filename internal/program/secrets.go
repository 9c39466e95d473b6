package program

import (
	"fmt"
	"maps"

	"github.com/troupe-engine/troupe/internal/secrets"
)

// giveSecrets reads the current secrets of a job into its environment. The function removed, which
// is never nil, removes the files of secrets.
func (r *Runner) giveSecrets(job *Job) (given *secrets.Given, removed func(), err error) {
	removed = func() {}
	if job.Program == nil || len(job.Program.Secrets) == 0 {
		return &secrets.Given{}, removed, nil
	}
	if given, err = r.opts.Secrets.Give(job.Program.Secrets); err != nil {
		return nil, removed, err
	}
	if removed, err = given.Unpack(); err != nil {
		return nil, removed, fmt.Errorf("files for the secrets: %w", errorCause(err))
	}
	own := *job.Program
	own.Env = maps.Clone(own.Env)
	if own.Env == nil {
		own.Env = map[string]string{}
	}
	maps.Copy(own.Env, given.Vars)
	job.Program = &own
	return given, removed, nil
}

// Hide masks the job's secrets in another result of the same job, for example one reported by
// another system.
func (r Result) Hide(told Result) Result {
	told.Output, told.Details, told.Error = r.hide.JSON(told.Output), r.hide.JSON(told.Details), r.hide.Text(told.Error)
	told.Metrics = HideMetrics(told.Metrics, r.hide)
	return told
}
