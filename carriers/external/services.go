package external

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"

	"github.com/troupe-engine/troupe/carriers/logs"
	"github.com/troupe-engine/troupe/flow"
)

// Service starts and polls jobs in another system, for nodes with its name as service. If it is an
// io.Closer, it is closed with the member.
type Service interface {
	Starter
	Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error)
	Cancel(ctx context.Context, x flow.External) error
}

// Tools are the parts of a member that a Service may use.
type Tools struct {
	Files  *Objects   // lets workers report through files; may have no bucket
	Logs   *logs.Book // stores the output of jobs
	Member string     // name of the member
	Store  string     // distinguishes work of this store from others
	// Live reports whether the work for a job is still needed, or is being canceled.
	Live      func(ctx context.Context, job string) (bool, error)
	Now       func() int64 // the store's time in Unix milliseconds
	MaxOutput int          // largest output in bytes
	Logger    *slog.Logger
}

// Open creates a Service for a member.
type Open func(Tools) (Service, error)

// Services maps names to services.
type Services map[string]Service

// OpenAll opens all services. If one fails, it closes the others.
func OpenAll(all map[string]Open, tools Tools) (Services, error) {
	opened := Services{}
	for name, open := range all {
		service, err := open(tools)
		if err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		opened[name] = service
	}
	return opened, nil
}

// Starters returns the services and others as starters.
func (s Services) Starters(others Starters) Starters {
	all := maps.Clone(others)
	for name, service := range s {
		all[name] = service
	}
	return all
}

// Close closes the services that are io.Closers.
func (s Services) Close() error {
	var errs []error
	for _, service := range s {
		if c, ok := service.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Given reports whether an object store is configured.
func (o *Objects) Given() bool { return o != nil && o.opts.Bucket != nil }

// Output returns the output in the files of an attempt whose worker ended successfully, as another
// component observed.
func (o *Objects) Output(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	a, err := o.decodeAttempt(&x)
	if err != nil {
		return failedStatus(err.Error()), nil
	}
	v, err := a.Output(ctx, o.opts.Bucket, o.opts.MaxOutput)
	return flow.ExternalStatus{Ended: v.Ended, Output: v.Output, Error: v.Error}, err
}
