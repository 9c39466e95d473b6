package fakes_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/troupe-engine/troupe/cloud/internal/fakes"
)

func config(t *testing.T, k *fakes.Kubernetes) *rest.Config { return configIn(t, k.Config(t)) }

func configIn(t *testing.T, path string) *rest.Config {
	c, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	// the default is protobuf
	c.ContentType, c.AcceptContentTypes = "application/json", "application/json"
	return c
}

func jobNamed(name, image string) *batch.Job {
	labels := map[string]string{"l": name}
	return &batch.Job{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels},
		Spec: batch.JobSpec{Template: core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels},
			Spec: core.PodSpec{RestartPolicy: core.RestartPolicyNever, Containers: []core.Container{{Name: "task", Image: image}}}}}}
}

// Kubernetes' own client validates the answers of the fake, and the kubeconfig it writes.
func TestClientGoAcceptsTheFakeKubernetes(t *testing.T) {
	k := fakes.NewKubernetes(t)
	jobs, err := batchclient.NewForConfig(config(t, k))
	require.NoError(t, err)
	pods, err := coreclient.NewForConfig(config(t, k))
	require.NoError(t, err)
	k.Behave("ok", fakes.Image{Prints: []string{"one", "two"}, Takes: 50 * time.Millisecond})
	k.Behave("oom", fakes.Image{OOM: true})

	_, err = jobs.Jobs("flows").Create(t.Context(), jobNamed("a", "ok"), meta.CreateOptions{})
	require.NoError(t, err)
	_, err = jobs.Jobs("flows").Create(t.Context(), jobNamed("a", "ok"), meta.CreateOptions{})
	require.True(t, kerrors.IsAlreadyExists(err), "%v", err)
	stream, err := pods.Pods("flows").GetLogs("a-x7k2p", &core.PodLogOptions{Container: "task", Follow: true}).Stream(t.Context())
	require.NoError(t, err)
	printed, err := io.ReadAll(stream)
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", string(printed))
	j, err := jobs.Jobs("flows").Get(t.Context(), "a", meta.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, batch.JobComplete, j.Status.Conditions[0].Type)

	_, err = jobs.Jobs("flows").Create(t.Context(), jobNamed("b", "oom"), meta.CreateOptions{})
	require.NoError(t, err)
	list, err := pods.Pods("flows").List(t.Context(), meta.ListOptions{LabelSelector: "l=b"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "OOMKilled", list.Items[0].Status.ContainerStatuses[0].State.Terminated.Reason)
	all, err := jobs.Jobs("flows").List(t.Context(), meta.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all.Items, 2)
	require.NoError(t, jobs.Jobs("flows").Delete(t.Context(), "a", meta.DeleteOptions{}))
	_, err = jobs.Jobs("flows").Get(t.Context(), "a", meta.GetOptions{})
	require.True(t, kerrors.IsNotFound(err))
}

func TestKubernetesRequestWithoutTokenIsRefused(t *testing.T) {
	k := fakes.NewKubernetes(t)
	c := config(t, k)
	c.BearerToken = "another one"
	jobs, err := batchclient.NewForConfig(c)
	require.NoError(t, err)
	_, err = jobs.Jobs("flows").Get(t.Context(), "a", meta.GetOptions{})
	require.True(t, kerrors.IsUnauthorized(err))
	require.Equal(t, int32(http.StatusUnauthorized), err.(kerrors.APIStatus).Status().Code)
}

func TestClientGoRunsThePluginOfTheFakeKubeconfig(t *testing.T) {
	k := fakes.NewKubernetes(t)
	jobs, err := batchclient.NewForConfig(configIn(t, k.LoginConfig(t)))
	require.NoError(t, err)
	all, err := jobs.Jobs("flows").List(t.Context(), meta.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, all.Items)
}
