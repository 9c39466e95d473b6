package fakes

import (
	"encoding/base64"
	"net/http"
	"sync"
)

// Job is a job of BigQuery or Dataproc. Its statuses are returned one after the other; the last one
// stays.
type Job struct {
	Statuses []map[string]any
	Cancels  int
}

// Jobs holds the jobs of BigQuery and Dataproc by id, and the secrets of Secret Manager by name.
type Jobs struct {
	mu      sync.Mutex
	jobs    map[string]*Job
	secrets map[string]string
}

func newJobs(mux *http.ServeMux) *Jobs {
	f := &Jobs{jobs: map[string]*Job{}, secrets: map[string]string{}}
	mux.HandleFunc("GET /bigquery/v2/projects/{project}/jobs/{job}", func(w http.ResponseWriter, r *http.Request) {
		f.getJob(w, r, func(status map[string]any) map[string]any {
			return map[string]any{"kind": "bigquery#job",
				"id": r.PathValue("project") + ":" + r.FormValue("location") + "." + r.PathValue(
					"job"), "status": status,
				"jobReference": map[string]any{"projectId": r.PathValue("project"),
					"jobId": r.PathValue("job"), "location": r.FormValue("location")}}
		})
	})
	mux.HandleFunc("POST /bigquery/v2/projects/{project}/jobs/{job}/cancel", func(w http.ResponseWriter, r *http.Request) {
		f.cancelJob(w, r.PathValue("job"), map[string]any{"kind": "bigquery#jobCancelResponse"})
	})
	mux.HandleFunc("GET /v1/projects/{project}/regions/{region}/jobs/{job}", func(w http.ResponseWriter, r *http.Request) {
		f.getJob(w, r, func(status map[string]any) map[string]any {
			return map[string]any{"reference": map[string]any{"projectId": r.PathValue("project"), "jobId": r.PathValue("job")},
				"placement": map[string]any{"clusterName": "c"}, "status": status, "done": false}
		})
	})
	mux.HandleFunc("POST /v1/projects/{project}/regions/{region}/jobs/{verb}", func(w http.ResponseWriter, r *http.Request) {
		job, ok := cutVerb(r.PathValue("verb"), "cancel")
		if !ok {
			http.NotFound(w, r)
			return
		}
		f.cancelJob(w, job, map[string]any{"reference": map[string]any{"jobId": job}})
	})
	mux.HandleFunc("GET /v1/projects/{project}/secrets/{secret}/versions/{verb}", f.accessSecret)
	return f
}

func cutVerb(text, verb string) (string, bool) {
	if n := len(text) - len(verb) - 1; n > 0 && text[n:] == ":"+verb {
		return text[:n], true
	}
	return "", false
}

// Put adds a job with these statuses.
func (f *Jobs) Put(id string, statuses ...map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs[id] = &Job{Statuses: statuses}
}

// Cancels returns how often a job was canceled.
func (f *Jobs) Cancels(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[id].Cancels
}

// Keep adds a secret.
func (f *Jobs) Keep(secret, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.secrets[secret] = value
}

func (f *Jobs) getJob(w http.ResponseWriter, r *http.Request, told func(status map[string]any) map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[r.PathValue("job")]
	if j == nil {
		writeRefusal(w, http.StatusNotFound, "NOT_FOUND", "Not found: Job "+r.PathValue("job"))
		return
	}
	status := j.Statuses[0]
	if len(j.Statuses) > 1 {
		j.Statuses = j.Statuses[1:]
	}
	writeJSON(w, http.StatusOK, told(status))
}

func (f *Jobs) cancelJob(w http.ResponseWriter, id string, told map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[id]
	if j == nil {
		writeRefusal(w, http.StatusNotFound, "NOT_FOUND", "Not found: Job "+id)
		return
	}
	j.Cancels++
	writeJSON(w, http.StatusOK, told)
}

func (f *Jobs) accessSecret(w http.ResponseWriter, r *http.Request) {
	version, ok := cutVerb(r.PathValue("verb"), "access")
	f.mu.Lock()
	defer f.mu.Unlock()
	value, known := f.secrets[r.PathValue("secret")]
	switch {
	case !ok:
		http.NotFound(w, r)
	case !known:
		writeRefusal(w, http.StatusNotFound, "NOT_FOUND", "Secret ["+r.PathValue("secret")+"] not found or has no versions.")
	default:
		writeJSON(w, http.StatusOK, map[string]any{"name": "projects/1/secrets/" + r.PathValue("secret") + "/versions/" + version,
			"payload": map[string]any{"data": base64.StdEncoding.EncodeToString([]byte(value)), "dataCrc32c": "1"}})
	}
}
