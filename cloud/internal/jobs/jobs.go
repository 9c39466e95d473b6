// Package jobs tracks jobs of BigQuery and Dataproc that tasks have started themselves.
//
// Promises: a failed look is repeated. A job ends only by a status of the service, or by its answer
// that there is no such job.
package jobs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/cloud/internal/google"
)

// jobRef is a task's reference to a job.
type jobRef struct {
	Project  string `json:"project"`
	Location string `json:"location"` // of BigQuery
	Region   string `json:"region"`   // of Dataproc
}

// form is the form of all parts of names. It prevents a name from leading to another resource.
var form = regexp.MustCompile(`^[\w.:-]+$`)

// readRef parses a task's reference to a job. For an invalid one it returns false and the status of
// a failed job.
func readRef(x troupe.External, service, defaultProject string) (a jobRef, failed troupe.ExternalStatus, ok bool) {
	if err := json.Unmarshal(x.Data, &a); err != nil {
		return a, endedStatus(fmt.Sprintf("the job %.100q has fields of the wrong type: %v", x.ID, err)), false
	}
	if a.Project == "" {
		a.Project = defaultProject
	}
	for _, part := range []string{a.Project, x.ID, a.Location + a.Region + "-"} {
		if !form.MatchString(part) {
			return a, endedStatus(fmt.Sprintf("the job %.100q of %s has no name, project, "+
				"location or region that can be one", x.ID, service)), false
		}
	}
	return a, troupe.ExternalStatus{}, true
}

func endedStatus(text string) troupe.ExternalStatus {
	return troupe.ExternalStatus{Ended: true, Error: text}
}

// lookError returns the result of a failed look at a job.
func lookError(service string, err error) (troupe.ExternalStatus, error) {
	switch status := google.Status(err); status {
	case http.StatusNotFound, http.StatusBadRequest:
		return endedStatus(fmt.Sprintf("%s answers %d: %s", service, status, google.Text(err))), nil
	}
	return troupe.ExternalStatus{Again: google.RetryAfter(err)}, fmt.Errorf("%s: %s", service, google.Text(err))
}

// cancelError returns the error of a cancellation, or nil for a job that has ended or does not
// exist.
func cancelError(err error) error {
	switch google.Status(err) {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusConflict:
		return nil
	}
	return err
}

// Options configure a tracker.
type Options struct {
	Client          *http.Client
	Endpoint        string // "" for the default endpoint
	Project, Region string // defaults for jobs that do not specify them
}
