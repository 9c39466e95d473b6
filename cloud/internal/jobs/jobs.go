// Package jobs looks after jobs of BigQuery and Dataproc that tasks have begun themselves.
//
// Promises: what cannot be looked at is looked at again; only what the service says of a job ends
// it, or that there is none.
package jobs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/cloud/internal/google"
)

// jobRef is what a task says of a job.
type jobRef struct {
	Project  string `json:"project"`
	Location string `json:"location"` // of BigQuery
	Region   string `json:"region"`   // of Dataproc
}

// form is that of the parts of names: none of them leads elsewhere.
var form = regexp.MustCompile(`^[\w.:-]+$`)

// readRef is false, with how a job has failed, when what a task says of it makes no sense.
func readRef(x troupe.External, service, defaultProject string) (a jobRef, failed troupe.ExternalStatus, ok bool) {
	if err := json.Unmarshal(x.Data, &a); err != nil {
		return a, endedStatus(fmt.Sprintf("the job %.100q has fields of the wrong type: %v", x.ID, err)), false
	}
	if a.Project == "" {
		a.Project = defaultProject
	}
	for _, part := range []string{a.Project, x.ID, a.Location + a.Region + "-"} {
		if !form.MatchString(part) {
			return a, endedStatus(fmt.Sprintf("the job %.100q of %s has no name, project, location or region that can be one", x.ID, service)), false
		}
	}
	return a, troupe.ExternalStatus{}, true
}

func endedStatus(text string) troupe.ExternalStatus {
	return troupe.ExternalStatus{Ended: true, Error: text}
}

// lookError is what is said when a job could not be looked at.
func lookError(service string, err error) (troupe.ExternalStatus, error) {
	switch status := google.Status(err); status {
	case http.StatusNotFound, http.StatusBadRequest:
		return endedStatus(fmt.Sprintf("%s answers %d: %s", service, status, google.Text(err))), nil
	}
	return troupe.ExternalStatus{Again: google.RetryAfter(err)}, fmt.Errorf("%s: %s", service, google.Text(err))
}

// cancelError says what came of calling a job off: of one that is over, or gone, there is nothing
// to say.
func cancelError(err error) error {
	switch google.Status(err) {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusConflict:
		return nil
	}
	return err
}

// Options of a tracker.
type Options struct {
	Client          *http.Client
	Endpoint        string // of the API; "" = where it always is
	Project, Region string // of jobs that do not say
}
