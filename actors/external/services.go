package external

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"

	"github.com/troupe-engine/troupe/actors/logs"
	"github.com/troupe-engine/troupe/flow"
)

// Service begins jobs in another system and looks after them, for nodes with its name as their
// service. One that is an io.Closer, too, is closed with its member.
type Service interface {
	Starter
	Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error)
	Cancel(ctx context.Context, x flow.External) error
}

// Tools are what a member lends to a Service.
type Tools struct {
	Files  *Objects   // how workers report by files; it may have nowhere to put them
	Logs   *logs.Book // takes what jobs print
	Member string     // its name
	Store  string     // tells work for tasks of this store from that of others
	// Live reports whether somebody waits for the work of a job, or it is being called off.
	Live      func(ctx context.Context, job string) (bool, error)
	Now       func() int64 // the store's time in Unix milliseconds
	MaxOutput int          // bytes of an output
	Logger    *slog.Logger
}

// Open makes a Service of what a member has.
type Open func(Tools) (Service, error)

// Services are known by their names.
type Services map[string]Service

// OpenAll opens services, or none of them.
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

// Starters are what begins their jobs, beside others.
func (s Services) Starters(others Starters) Starters {
	all := maps.Clone(others)
	for name, service := range s {
		all[name] = service
	}
	return all
}

// Close closes those that want it.
func (s Services) Close() error {
	var errs []error
	for _, service := range s {
		if c, ok := service.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Given reports whether there is somewhere to put files.
func (o *Objects) Given() bool { return o != nil && o.opts.Bucket != nil }

// Output is what an attempt has left in its files, whose worker somebody else has seen end well.
func (o *Objects) Output(ctx context.Context, x flow.External) (flow.ExternalStatus, error) {
	a, err := o.decodeAttempt(&x)
	if err != nil {
		return failedStatus(err.Error()), nil
	}
	v, err := a.Output(ctx, o.opts.Bucket, o.opts.MaxOutput)
	return flow.ExternalStatus{Ended: v.Ended, Output: v.Output, Error: v.Error}, err
}
