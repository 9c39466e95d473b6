package troupe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/carriers/containers"
	"github.com/troupe-engine/troupe/carriers/external"
	"github.com/troupe-engine/troupe/flow"
)

// newContainers returns the service that starts and follows containers, if they are allowed.
func (e *Engine) newContainers(ctx context.Context) (*containers.Service, error) {
	o := containers.Options{Allow: e.cfg.AllowContainers, Host: e.cfg.ContainerHost,
		Logins: e.cfg.RegistryAuthFile, Networks: e.cfg.ContainerNetworks, Dir: e.cfg.ScriptDir,
		Most: e.cfg.Containers, MaxOutput: e.cfg.Limits.OrDefault().Value,
		Files: e.objects, Now: e.nowMillis, Logs: e.logs, Secrets: e.secrets, Member: e.cfg.Name, Live: e.waitedFor, Logger: e.cfg.Logger}
	if o.Allow {
		var err error
		if o.Store, err = e.storeMark(ctx, "containers"); err != nil {
			return nil, err
		}
	}
	return containers.New(o)
}

// newServices opens the services of the program with the tools of the member.
func (e *Engine) newServices(ctx context.Context) (external.Services, error) {
	if len(e.cfg.Services) == 0 {
		return nil, nil
	}
	mark, err := e.storeMark(ctx, "work outside")
	if err != nil {
		return nil, err
	}
	return external.OpenAll(e.cfg.Services, external.Tools{Files: e.objects, Logs: e.logs,
		Member: e.cfg.Name, Store: mark, Live: e.waitedFor, Now: e.nowMillis,
		MaxOutput: e.cfg.Limits.OrDefault().Value, Logger: e.cfg.Logger})
}

// storeMark returns a mark that separates external jobs of this store from jobs of other stores. It
// is derived from the store's secret and does not reveal it.
func (e *Engine) storeMark(ctx context.Context, of string) (string, error) {
	secret, err := e.stores.Newest.Secret(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(of + " of " + secret))
	return hex.EncodeToString(sum[:8]), nil
}

// waitedFor reports whether a task still waits for the external work of a job, or that work is
// being canceled.
func (e *Engine) waitedFor(ctx context.Context, job string) (bool, error) {
	task, at, err := flow.ParseJobID(job)
	if err != nil {
		return false, nil // not a job of this engine
	}
	rows, err := e.stores.Newest.ExternalsOf(ctx, task)
	if err != nil && !api.Missing(err) {
		return false, err
	}
	for _, row := range rows {
		if row.Job == job {
			return true, nil
		}
	}
	run, err := e.stores.Reader.Run(ctx, task, at)
	if api.Missing(err) {
		return false, nil
	}
	return err == nil && run.EndedAt == 0, err
}

// closeContainers stops following containers. The containers keep running.
func (e *Engine) closeContainers() error {
	if e.containers == nil {
		return nil
	}
	return e.containers.Close()
}
