// Package cloud adds cloud features to members. They start and track jobs of Cloud Run and
// Kubernetes, track jobs of BigQuery and Dataproc, read secrets from Secret Manager, and open
// buckets for large values and for workers that report by files.
//
// Promises: no request is sent to Google Cloud before a task needs it, and none to Kubernetes
// unless namespaces are named. So a member without credentials starts normally, and only the tasks
// that need them fail.
package cloud

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/cloud/bucket"
	"github.com/troupe-engine/troupe/cloud/internal/cloudrun"
	"github.com/troupe-engine/troupe/cloud/internal/google"
	"github.com/troupe-engine/troupe/cloud/internal/jobs"
	"github.com/troupe-engine/troupe/cloud/internal/kube"
	"github.com/troupe-engine/troupe/cloud/internal/secrets"
)

// Addition holds the settings of these features. Each has a flag and an environment variable.
type Addition struct {
	Endpoints map[string]string `name:"cloud-endpoint" env:"TROUPE_CLOUD_ENDPOINT" placeholder:"API=URL" group:"Clouds" help:"Where an API of Google Cloud is, if not where it always is: run, bigquery, dataproc or secretmanager; also TROUPE_RUN_ENDPOINT and the like."`
	Project   string            `name:"cloud-project" env:"TROUPE_CLOUD_PROJECT,GCP_PROJECT" placeholder:"ID" group:"Clouds" help:"Project of Google Cloud that jobs and secrets are in which do not say."`
	Region    string            `name:"cloud-region" env:"TROUPE_CLOUD_REGION" placeholder:"NAME" default:"us-central1" group:"Clouds" help:"Region of Google Cloud that jobs are in which do not say (${default})."`
	Secrets   map[string]string `name:"cloud-secret" env:"TROUPE_CLOUD_SECRET" placeholder:"NAME=SECRET" group:"Clouds" help:"Secret of Secret Manager that flows may name, as NAME: projects/P/secrets/S, with /versions/V or without, or S alone; may be repeated."`

	Namespaces []string `name:"kubernetes-namespace" env:"TROUPE_KUBERNETES_NAMESPACE" placeholder:"NAME" group:"Clouds" help:"Namespaces of Kubernetes that flows may have jobs in, with any service account there; the first one is that of those that do not say. None otherwise."`
	Kubeconfig string   `name:"kubernetes-config" env:"TROUPE_KUBERNETES_CONFIG" type:"path" placeholder:"FILE" group:"Clouds" help:"How Kubernetes is reached: a kubeconfig; what KUBECONFIG says otherwise, or the account of this pod."`
}

const defaultRegion = "us-central1"

// paths maps the APIs with configurable endpoints to their base paths.
var paths = map[string]string{"run": "", "bigquery": "bigquery/v2/", "dataproc": "", "secretmanager": ""}

// Extend adds the features to a member's configuration.
func (a *Addition) Extend(cfg *troupe.Config) error {
	at, err := a.endpoints()
	if err != nil {
		return err
	}
	if a.Region == "" { // if the program does not use the flags
		a.Region = defaultRegion
	}
	client := google.NewAccount().Client()
	cfg.Services = with(cfg.Services, cloudrun.Name, func(tools troupe.ServiceTools) (troupe.Service, error) {
		return cloudrun.New(cloudrun.Options{Client: client, Endpoint: at["run"], Project: a.Project, Region: a.Region, Tools: tools})
	})
	cfg.Services = with(cfg.Services, kube.Name, func(tools troupe.ServiceTools) (troupe.Service, error) {
		return kube.New(kube.Options{Config: a.Kubeconfig, Namespaces: a.Namespaces, Tools: tools})
	})
	queries, err := jobs.NewBigQuery(jobs.Options{Client: client, Endpoint: at["bigquery"], Project: a.Project})
	if err != nil {
		return err
	}
	clusters, err := jobs.NewDataproc(jobs.Options{Client: client, Endpoint: at["dataproc"], Project: a.Project, Region: a.Region})
	if err != nil {
		return err
	}
	for scheme, open := range bucket.Openers() {
		cfg.Buckets = with(cfg.Buckets, scheme, open)
	}
	cfg.Trackers = with(with(cfg.Trackers, "bigquery", troupe.Tracker(queries)), "dataproc", troupe.Tracker(clusters))
	return a.addSecrets(cfg, client, at["secretmanager"])
}

func (a *Addition) addSecrets(cfg *troupe.Config, client *http.Client, endpoint string) error {
	manager, err := secrets.New(secrets.Options{Client: client, Endpoint: endpoint, Project: a.Project})
	if err != nil {
		return err
	}
	for name, text := range a.Secrets {
		read, err := manager.Secret(text)
		if err != nil {
			return fmt.Errorf("--cloud-secret %s=…: %w", name, err)
		}
		cfg.Secrets = with(cfg.Secrets, name, read)
	}
	return nil
}

// with returns a copy of a map with one more entry.
func with[V any](all map[string]V, name string, v V) map[string]V {
	all = maps.Clone(all)
	if all == nil {
		all = map[string]V{}
	}
	all[name] = v
	return all
}

// endpoints returns the configured endpoints of APIs.
func (a *Addition) endpoints() (map[string]string, error) {
	for name := range a.Endpoints {
		if _, ok := paths[name]; !ok {
			return nil, fmt.Errorf("--cloud-endpoint %s=…: there is no such API here, but %s", name,
				strings.Join(slices.Sorted(maps.Keys(paths)), ", "))
		}
	}
	at := map[string]string{}
	for name, path := range paths {
		text := a.Endpoints[name]
		if text == "" {
			text = os.Getenv("TROUPE_" + strings.ToUpper(name) + "_ENDPOINT")
		}
		if text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("the endpoint of %s is no URL such as http://127.0.0.1:8090: %q", name, text)
		}
		at[name] = strings.TrimSuffix(text, "/") + "/" + path
	}
	return at, nil
}
