package fakes_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	bigquery "google.golang.org/api/bigquery/v2"
	dataproc "google.golang.org/api/dataproc/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	secretmanager "google.golang.org/api/secretmanager/v1"

	"github.com/troupe-engine/troupe/cloud/internal/fakes"
)

func TestGoogleClientsAcceptTheFakeJobsAndSecrets(t *testing.T) {
	g := fakes.NewGoogle(t)
	with := []option.ClientOption{option.WithHTTPClient(account(t, g))}
	queries, err := bigquery.NewService(context.Background(), append(with, option.WithEndpoint(g.URL+"/bigquery/v2/"))...)
	require.NoError(t, err)
	with = append(with, option.WithEndpoint(g.URL+"/"))
	clusters, err := dataproc.NewService(context.Background(), with...)
	require.NoError(t, err)
	manager, err := secretmanager.NewService(context.Background(), with...)
	require.NoError(t, err)

	g.Jobs.Put("q", map[string]any{"state": "RUNNING"},
		map[string]any{"state": "DONE", "errorResult": map[string]any{"reason": "invalidQuery",
			"message": "no such table"}})
	for _, want := range []string{"RUNNING", "DONE"} {
		job, err := queries.Jobs.Get("p", "q").Location("EU").Do()
		require.NoError(t, err)
		require.Equal(t, want, job.Status.State)
		require.Equal(t, "EU", job.JobReference.Location)
		if want == "DONE" {
			require.Equal(t, "no such table", job.Status.ErrorResult.Message)
		}
	}
	_, err = queries.Jobs.Cancel("p", "q").Location("EU").Do()
	require.NoError(t, err)
	require.Equal(t, 1, g.Jobs.Cancels("q"))
	_, err = queries.Jobs.Get("p", "none").Do()
	require.Equal(t, http.StatusNotFound, err.(*googleapi.Error).Code)

	g.Jobs.Put("d", map[string]any{"state": "ERROR", "details": "out of memory"})
	job, err := clusters.Projects.Regions.Jobs.Get("p", "r", "d").Do()
	require.NoError(t, err)
	require.Equal(t, "out of memory", job.Status.Details)
	_, err = clusters.Projects.Regions.Jobs.Cancel("p", "r", "d", &dataproc.CancelJobRequest{}).Do()
	require.NoError(t, err)
	require.Equal(t, 1, g.Jobs.Cancels("d"))

	g.Jobs.Keep("db", "hunter22")
	version, err := manager.Projects.Secrets.Versions.Access("projects/p/secrets/db/versions/latest").Do()
	require.NoError(t, err)
	require.Equal(t, "aHVudGVyMjI=", version.Payload.Data)
	_, err = manager.Projects.Secrets.Versions.Access("projects/p/secrets/none/versions/latest").Do()
	require.Equal(t, http.StatusNotFound, err.(*googleapi.Error).Code)
}
