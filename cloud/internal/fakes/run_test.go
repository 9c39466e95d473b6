package fakes_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	run "google.golang.org/api/run/v2"

	"github.com/troupe-engine/troupe/cloud/internal/fakes"
	"github.com/troupe-engine/troupe/cloud/internal/google"
)

// account returns a client with the credentials of a fake.
func account(t *testing.T, g *fakes.Google) *http.Client {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", g.Credentials(t))
	return google.NewAccount().Client()
}

func executions(t *testing.T, g *fakes.Google, client *http.Client) *run.ProjectsLocationsJobsService {
	api, err := run.NewService(context.Background(), option.WithHTTPClient(client), option.WithEndpoint(g.URL+"/"))
	require.NoError(t, err)
	return api.Projects.Locations.Jobs
}

const someJob = "projects/p/locations/r/jobs/j"

func begin(t *testing.T, jobs *run.ProjectsLocationsJobsService) run.GoogleCloudRunV2Execution {
	operation, err := jobs.Run(someJob,
		&run.GoogleCloudRunV2RunJobRequest{Overrides: &run.GoogleCloudRunV2Overrides{TaskCount: 1,
			Timeout: "600s",
			ContainerOverrides: []*run.GoogleCloudRunV2ContainerOverride{{Env: []*run.GoogleCloudRunV2EnvVar{{Name: "A",
				Value: "b"}}}}}}).Do()
	require.NoError(t, err)
	var e run.GoogleCloudRunV2Execution
	require.NoError(t, json.Unmarshal(operation.Metadata, &e))
	return e
}

func state(e *run.GoogleCloudRunV2Execution) string {
	for _, c := range e.Conditions {
		if c.Type == "Completed" {
			return c.State
		}
	}
	return ""
}

// Google's own client validates the answers of the fake.
func TestGoogleClientAcceptsTheFakeCloudRun(t *testing.T) {
	g := fakes.NewGoogle(t)
	jobs := executions(t, g, account(t, g))
	g.Run.Behave("j", fakes.Behavior{Looks: 2, Pends: 1})
	e := begin(t, jobs)
	require.Equal(t, someJob+"/executions/j-00000", e.Name)
	var states []string
	var ran []bool
	for range 3 {
		now, err := jobs.Executions.Get(e.Name).Do()
		require.NoError(t, err)
		states, ran = append(states, state(now)), append(ran, now.StartTime != "")
	}
	require.Equal(t, []string{"CONDITION_PENDING", "CONDITION_RECONCILING", "CONDITION_SUCCEEDED"}, states)
	require.Equal(t, []bool{false, true, true}, ran)

	for range 3 {
		begin(t, jobs)
	}
	var names []string
	require.NoError(t, jobs.Executions.List(someJob).PageSize(3).Pages(t.Context(),
		func(page *run.GoogleCloudRunV2ListExecutionsResponse) error {
			for _, e := range page.Executions {
				names = append(names, e.Name)
				require.Equal(t, "A", e.Template.Containers[0].Env[1].Name, "what was laid over is shown")
			}
			return nil
		}))
	require.Equal(t, []string{someJob + "/executions/j-00003", someJob + "/executions/j-00002",
		someJob + "/executions/j-00001", someJob + "/executions/j-00000"}, names)

	_, err := jobs.Executions.Cancel(names[0], &run.GoogleCloudRunV2CancelExecutionRequest{}).Do()
	require.NoError(t, err)
	canceled, err := jobs.Executions.Get(names[0]).Do()
	require.NoError(t, err)
	require.Equal(t, "CONDITION_FAILED", state(canceled))
	_, err = jobs.Executions.Get(someJob + "/executions/none").Do()
	require.Equal(t, http.StatusNotFound, err.(*googleapi.Error).Code)
}

func TestRequestWithoutTokenIsRefused(t *testing.T) {
	g := fakes.NewGoogle(t)
	_, err := executions(t, g, http.DefaultClient).Executions.Get(someJob + "/executions/e").Do()
	require.Equal(t, http.StatusUnauthorized, err.(*googleapi.Error).Code)
}

// Ork's path is not a method described by Google.
func TestOrksPathDoesNotExist(t *testing.T) {
	g := fakes.NewGoogle(t)
	resp, err := account(t, g).Post(g.URL+"/v1/namespaces/p/jobs/j:run", "application/json", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
}

func TestRejectedTokenIsReplaced(t *testing.T) {
	g := fakes.NewGoogle(t)
	jobs := executions(t, g, account(t, g))
	begin(t, jobs)
	g.Expire()
	begin(t, jobs)
	require.Len(t, g.Run.Executions("j"), 2)
	require.Equal(t, 2, g.Tokens())
}

func TestTwoProcessesOfOneAccountHaveATokenEach(t *testing.T) {
	g := fakes.NewGoogle(t)
	one, other := executions(t, g, account(t, g)), executions(t, g, account(t, g))
	begin(t, one)
	begin(t, other)
	begin(t, one)
	require.Equal(t, 2, g.Tokens())
}

func TestAnAnswerMayBeLost(t *testing.T) {
	g := fakes.NewGoogle(t)
	jobs := executions(t, g, account(t, g))
	g.Refuse(fakes.Refusal{Match: ":run", Done: true}, fakes.Refusal{Match: ":run", Status: 429, Text: "slower", After: "7"})
	_, err := jobs.Run(someJob, &run.GoogleCloudRunV2RunJobRequest{}).Do()
	require.True(t, google.Passing(err))
	require.Zero(t, google.Status(err))
	_, err = jobs.Run(someJob, &run.GoogleCloudRunV2RunJobRequest{}).Do()
	require.Equal(t, "slower", google.Text(err))
	require.Equal(t, "7s", google.RetryAfter(err).String())
	require.Len(t, g.Run.Executions("j"), 1)
}
