// Package kube begins jobs of Kubernetes (batch/v1) and looks after them.
//
// Promises: nothing is begun outside of the namespaces that the operator names. A job has a name
// that follows from its attempt, so there is never a second one for it: whoever is asked to begin
// it once more finds it by that name, knows it by its labels, and takes it over. Kubernetes tries
// nothing again by itself. What its pod prints is its attempt's log, from the first line and each
// line once, also when somebody else goes on looking. A job is deleted when its end is stored, or
// nobody waits for it any longer; what is left over, by whatever crash, is found by its label.
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

// Name is what the service is called in flows, and in lists of what is waited for.
const Name = "kubernetes"

// Labels and annotations of our jobs and of their pods.
const (
	labelStore    = "troupe.store"
	labelName     = "troupe.name" // of the job
	annotationJob = "troupe.job"  // the id of ours
)

// taskContainer is what the only container of a pod is called.
const taskContainer = "task"

// Options of a Service.
type Options struct {
	Config     string   // path of a kubeconfig; "" = as kubectl and pods find theirs
	Namespaces []string // that jobs may be in; the first one is that of those that do not say. None = there are no jobs
	Tools      troupe.ServiceTools
}

// Service begins jobs and looks after them.
type Service struct {
	opts Options

	ctx   context.Context
	end   context.CancelFunc
	work  sync.WaitGroup
	sweep chan struct{} // has something when somebody should look soon for what is left over

	mu      sync.Mutex
	client  *kubeClient          // nil before it was needed
	watches map[string]*logWatch // by the names of jobs
}

// New makes one. It is to be closed.
func New(o Options) (*Service, error) {
	o.Tools.Logger = cmp.Or(o.Tools.Logger, slog.Default())
	s := &Service{opts: o, watches: map[string]*logWatch{}, sweep: make(chan struct{}, 1)}
	s.ctx, s.end = context.WithCancel(context.Background())
	if len(o.Namespaces) > 0 {
		s.work.Go(s.sweepLoop)
	}
	return s, nil
}

// Close stops looking. Jobs go on: whoever has their tasks then looks after them.
func (s *Service) Close() error {
	s.end()
	s.work.Wait()
	return nil
}

// refusal is what a job comes to where none is allowed.
const refusal = "jobs of Kubernetes are not allowed on this server; its operator can name namespaces for them with --kubernetes-namespace"

// apiClient is a client of the API server. What cannot be reached yet is tried the next time.
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

// jobName is what the job of an attempt is called. It is the same whoever begins it, so Kubernetes
// refuses a second one.
func (s *Service) jobName(job string) string {
	sum := sha256.Sum256([]byte(s.opts.Tools.Store + "\n" + job))
	return "troupe-" + hex.EncodeToString(sum[:16])
}

// jobNote is what has to be known of a job.
type jobNote struct {
	Namespace string         `json:"namespace"`
	Memory    string         `json:"memory,omitempty"`
	Files     *outside.Files `json:"files,omitempty"`
}

// readNote says which job a piece of work is. A program may say that it waits for whatever it
// likes, and is to reach no job by that: neither another attempt's nor one that is not ours.
func (s *Service) readNote(x flow.External) (n jobNote, err error) {
	if x.ID != s.jobName(x.Job) || json.Unmarshal(x.Data, &n) != nil || !slices.Contains(s.opts.Namespaces, n.Namespace) {
		return n, fmt.Errorf("the job %.100q was not begun for this attempt: only a node with service: %s begins one that is waited for", x.ID, Name)
	}
	return n, nil
}
