package kube

import (
	"context"
	"errors"
	"time"
)

// sweepEvery is the interval of sweeps for leftover jobs, and requestTimeout is the time limit of a
// sweep.
const (
	sweepEvery     = time.Minute
	requestTimeout = 30 * time.Second
)

// scheduleSweep triggers a sweep.
func (s *Service) scheduleSweep() {
	select {
	case s.sweep <- struct{}{}:
	default:
	}
}

// sweepLoop deletes leftover jobs: those that no attempt waits for.
func (s *Service) sweepLoop() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	reached := true
	for {
		err := s.sweepOnce()
		if s.ctx.Err() != nil {
			return
		}
		if err != nil && reached {
			s.opts.Tools.Logger.Warn("listing orphaned Kubernetes jobs failed, retrying", "error", err)
		}
		reached = err == nil
		s.forgetUnasked()
		select {
		case <-tick.C:
		case <-s.sweep:
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Service) sweepOnce() (failed error) {
	ctx, cancel := context.WithTimeout(s.ctx, requestTimeout)
	defer cancel()
	c, err := s.apiClient()
	if err != nil {
		return err
	}
	for _, namespace := range s.opts.Namespaces {
		var all []kubeJob
		err := c.listJobs(ctx, namespace, labelStore+"="+s.opts.Tools.Store,
			func(j kubeJob) { all = append(all, kubeJob{Metadata: j.Metadata}) })
		failed = errors.Join(failed, err)
		for _, j := range all { // a job that cannot be deleted must not keep the others
			failed = errors.Join(failed, s.sweepOne(ctx, c, namespace, j.Metadata))
		}
	}
	return failed
}

// sweepOne deletes a job that no attempt waits for.
func (s *Service) sweepOne(ctx context.Context, c *kubeClient, namespace string, of objectMeta) error {
	if of.DeletionTimestamp != nil {
		return nil
	}
	if live, err := s.opts.Tools.Live(ctx, of.Annotations[annotationJob]); err != nil || live {
		return err
	}
	s.opts.Tools.Logger.InfoContext(ctx, "deleting an orphaned Kubernetes job", "job",
		of.Annotations[annotationJob], "name", of.Name)
	return c.deleteJob(ctx, namespace, of.Name)
}
