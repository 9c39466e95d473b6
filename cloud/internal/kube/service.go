// Package kube starts jobs of Kubernetes (batch/v1) and tracks them.
//
// Promises:
//   - Nothing is started outside the namespaces that the operator names.
//   - The name of a job is derived from its attempt, so there is never a second one for it. A
//     member that starts it again finds it by that name, recognizes it by its labels, and takes it
//     over. Kubernetes itself retries nothing.
//   - The output of its pod is the attempt's log: from the first line, and each line once, even if
//     another member continues the tracking.
//   - A job is deleted when its end is stored, or when no attempt waits for it any longer. Jobs
//     left over by a crash are found by their label.
package kube

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/cloud/internal/outside"
	"github.com/troupe-engine/troupe/flow"
)

// Name is the name of the service in flows, and in lists of external work.
const Name = "kubernetes"

// Labels and annotations of our jobs and their pods.
const (
	labelStore    = "troupe.store"
	labelName     = "troupe.name" // of the job
	annotationJob = "troupe.job"  // the id of our job
)

// taskContainer is the name of the only container of a pod.
const taskContainer = "task"

// Options configure a Service.
type Options struct {
	Config string // path of a kubeconfig; "" for the same search as kubectl and pods
	// allowed namespaces; the first one is the default, and none means that no jobs are allowed
	Namespaces []string
	Tools      troupe.ServiceTools
}

// Service starts jobs and tracks them.
type Service struct {
	opts Options

	ctx   context.Context
	end   context.CancelFunc
	work  sync.WaitGroup
	sweep chan struct{} // holds a value when a sweep was requested

	mu      sync.Mutex
	client  *kubeClient          // nil before its first use
	watches map[string]*logWatch // by the names of jobs
}

// New returns a Service; the caller has to close it.
func New(o Options) (*Service, error) {
	o.Tools.Logger = cmp.Or(o.Tools.Logger, slog.Default())
	s := &Service{opts: o, watches: map[string]*logWatch{}, sweep: make(chan struct{}, 1)}
	s.ctx, s.end = context.WithCancel(context.Background())
	if len(o.Namespaces) > 0 {
		s.work.Go(s.sweepLoop)
	}
	return s, nil
}

// Close stops the tracking. Jobs keep running; the next owner of their tasks tracks them.
func (s *Service) Close() error {
	s.end()
	s.work.Wait()
	return nil
}

// refusal is the error of a job if none are allowed.
const refusal = "jobs of Kubernetes are not allowed on this server; its operator can name namespaces for them with --kubernetes-namespace"

// apiClient returns a client of the API server. After an error the next call tries again.
func (s *Service) apiClient() (*kubeClient, error) {
	if len(s.opts.Namespaces) == 0 {
		return nil, flow.Errorf(flow.Denied, refusal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		c, err := newClient(s.opts.Config)
		if err != nil {
			return nil, fmt.Errorf("no credentials for Kubernetes: %w", err)
		}
		s.client = c
	}
	return s.client, nil
}

// jobName returns the name of an attempt's job. It is the same for all members, so Kubernetes
// refuses a second one.
func (s *Service) jobName(job string) string {
	sum := sha256.Sum256([]byte(s.opts.Tools.Store + "\n" + job))
	return "troupe-" + hex.EncodeToString(sum[:16])
}

// jobNote is the stored information about a job.
type jobNote struct {
	Namespace string         `json:"namespace"`
	Memory    string         `json:"memory,omitempty"`
	Files     *outside.Files `json:"files,omitempty"`
}

// readNote returns the job of external work. A program may claim to wait for any job. So readNote
// rejects jobs of other attempts and jobs that are not ours.
func (s *Service) readNote(x flow.External) (n jobNote, err error) {
	if x.ID != s.jobName(x.Job) || json.Unmarshal(x.Data, &n) != nil || !slices.Contains(s.opts.Namespaces, n.Namespace) {
		return n, fmt.Errorf("the job %.100q was not begun for this attempt: only a node with "+
			"service: %s begins one that is waited for", x.ID, Name)
	}
	return n, nil
}
