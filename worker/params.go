package worker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"github.com/troupe-engine/troupe/api/wire"
)

var errNoParams = errors.New("the engine has not told the params")

// maxParams is the number of steps whose large params a worker caches.
const maxParams = 16

// paramsCache caches params that are too large to be sent with each job, by their key. The params
// are fetched once for all jobs of a step.
type paramsCache struct {
	mu    sync.Mutex
	known map[string]*lazyParams
	keys  []string // oldest first
}

type lazyParams struct {
	mu    sync.Mutex
	value json.RawMessage
}

func (p *paramsCache) entryFor(key string) *lazyParams {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.known[key]; l != nil {
		return l
	}
	if len(p.keys) >= maxParams {
		delete(p.known, p.keys[0])
		p.keys = p.keys[1:]
	}
	if p.known == nil {
		p.known = map[string]*lazyParams{}
	}
	l := &lazyParams{}
	p.known[key], p.keys = l, append(p.keys, key)
	return l
}

// fetchParams adds the params to a job. It returns false if the params are not available, or ctx
// ends.
func (w *Worker) fetchParams(ctx context.Context, c *claimedJob, job *Job) bool {
	if c.paramsKey == "" {
		return true
	}
	l := w.params.entryFor(c.paramsKey)
	l.mu.Lock()
	defer l.mu.Unlock()
	var pause backoff
	for l.value == nil {
		var answer wire.JobParams
		err := w.server.callEngine(ctx, http.MethodGet,
			"/jobs/"+url.PathEscape(c.ID)+"/params?token="+url.QueryEscape(c.token), nil, &answer,
			requestTime)
		// large params are neither empty nor null
		if err == nil && (len(answer.Params) == 0 || string(answer.Params) == "null") {
			err = errNoParams
		}
		if err == nil {
			l.value = answer.Params
			break
		}
		if isPermanent(err) || !pause.waitNext(ctx, err) {
			return false
		}
	}
	job.Params = l.value
	return true
}
