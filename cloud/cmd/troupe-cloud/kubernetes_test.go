package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batch "k8s.io/api/batch/v1"
	"sigs.k8s.io/json"

	"github.com/troupe-engine/troupe/cloud/internal/fakes"
)

// inKubernetes starts a member whose flows may use two namespaces.
func inKubernetes(t *testing.T, k *fakes.Kubernetes) *member {
	return newMember(t, nil, "--kubernetes-config", k.Config(t), "--kubernetes-namespace", "flows,others")
}

func TestKubernetesJobIsStartedFollowedAndDeleted(t *testing.T) {
	t.Parallel()
	k := fakes.NewKubernetes(t)
	ends := make(chan struct{})
	k.Behave("example/train:1", fakes.Image{Prints: []string{"begun", `ORK_OUTPUT:{"rows": 3}`,
		"ended"}, Takes: 1500 * time.Millisecond, Until: ends})
	m := inKubernetes(t, k)
	r := m.run("k1", obj{"day": "monday"},
		`train: {executor: kubernetes, image: "example/train:1", command: "train --day $DAY", env: {DAY: "$(date) $x"}, timeout: 600,
    config: {namespace: others, service_account: trainer, pull: always}, resources: {cpu: 500, memory: 512Mi}}`)
	r.until("train", "running")
	require.Eventually(t, func() bool {
		_, logs := m.call("GET", "/v1/tasks/"+r.id+"/logs", nil)
		return len(logs["items"].([]any)) > 0
	}, patience, 10*time.Millisecond, "the log grows while it runs")
	require.Equal(t, "running", r.task("train")["status"])
	close(ends)
	r.ends("success")
	require.Equal(t, obj{"rows": 3.0}, r.task("train")["output"])
	r.printed("begun", `ORK_OUTPUT:{"rows": 3}`, "ended")

	made := k.Made()
	require.Len(t, made, 1)
	require.Equal(t, "others", made[0].Namespace)
	require.Equal(t, "kubernetes:others/"+made[0].Name, r.task("train")["execution_name"])
	require.Equal(t, []string{"/bin/sh", "-c", "train --day $DAY"}, made[0].Args)
	require.Equal(t, "$(date) $x", made[0].Env["DAY"], "nothing is filled in")
	require.Equal(t, `{"day":"monday"}`, made[0].Env["ORK_INPUT_JSON"])
	require.Eventually(t, func() bool { return k.Made()[0].Gone }, patience, 10*time.Millisecond, "it is deleted when its end is stored")

	var j batch.Job
	strict, err := json.UnmarshalStrict(k.Bodies()[0], &j)
	require.NoError(t, err)
	require.Empty(t, strict, "Kubernetes' own types know all that is sent")
	spec := j.Spec.Template.Spec
	require.EqualValues(t, 0, *j.Spec.BackoffLimit)
	require.EqualValues(t, 660, *j.Spec.ActiveDeadlineSeconds)
	require.Equal(t, []any{"trainer", "Never", "Always"},
		[]any{spec.ServiceAccountName, string(spec.RestartPolicy),
			string(spec.Containers[0].ImagePullPolicy)})
	require.Equal(t, "500m", spec.Containers[0].Resources.Limits.Cpu().String())
	require.Equal(t, "512Mi", spec.Containers[0].Resources.Limits.Memory().String())
}

func TestFailedKubernetesJobReportsTheReason(t *testing.T) {
	t.Parallel()
	k := fakes.NewKubernetes(t)
	k.Behave("exits", fakes.Image{Prints: []string{"oops"}, Exit: 3})
	k.Behave("says", fakes.Image{Prints: []string{`ORK_ERROR:{"message": "no rows"}`}, Exit: 1})
	k.Behave("oom", fakes.Image{OOM: true})
	k.Behave("missing", fakes.Image{Waits: "ImagePullBackOff"})
	k.Behave("evicted", fakes.Image{Evicted: true})
	m := inKubernetes(t, k)
	k.Refuse(fakes.Refusal{Match: "/namespaces/others/jobs", Status: 403, Text: "jobs.batch is forbidden"})
	r := m.run("k2", nil, `exits: {executor: kubernetes, image: exits}`,
		`says: {executor: kubernetes, image: says}`,
		`oom: {executor: kubernetes, image: oom, resources: {memory: 64Mi}}`,
		`missing: {executor: kubernetes, image: missing}`, `evicted: {executor: kubernetes, image: evicted, retries: 1}`,
		`elsewhere: {executor: kubernetes, image: exits, config: {namespace: kube-system}}`,
		`denied: {executor: kubernetes, image: exits, config: {namespace: others}}`)
	r.ends("failed")
	for name, want := range map[string]string{
		"exits": "exit status 3: oops", "says": "no rows", "oom": "out of memory (limit 64Mi)",
		"evicted":   "The node was low on resource: memory.",
		"missing":   "the container cannot be started: ImagePullBackOff: Back-off pulling image",
		"elsewhere": `the namespace "kube-system" is not allowed; the operator of this server can name it with --kubernetes-namespace`,
		"denied":    "Kubernetes answers 403: jobs.batch is forbidden",
	} {
		require.Equal(t, want, r.task(name)["error"], name)
	}
	for name, ran := range map[string]bool{"exits": true, "says": true, "oom": true,
		"missing": false, "elsewhere": false, "denied": false} {
		require.Equal(t, ran, r.task(name)["started_at"] != nil, "%s: a pod that waits does not run", name)
	}
	require.EqualValues(t, 2, r.task("evicted")["attempt"])
	require.Eventually(t, func() bool {
		for _, j := range k.Made() {
			if !j.Gone {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond)
}

func TestKubernetesJobsNeedNamespaces(t *testing.T) {
	t.Parallel()
	k := fakes.NewKubernetes(t)
	r := newMember(t, nil, "--kubernetes-config", k.Config(t)).run("k3", nil, `a: {executor: kubernetes, image: i}`)
	r.ends("failed")
	require.Equal(t, "jobs of Kubernetes are not allowed on this server; its operator can name "+
		"namespaces for them with --kubernetes-namespace", r.task("a")["error"])
	require.Empty(t, k.Requests())
}

func TestKilledMemberTakesOverItsKubernetesJobs(t *testing.T) {
	t.Parallel()
	k := fakes.NewKubernetes(t)
	ends := make(chan struct{})
	k.Behave("i", fakes.Image{Prints: []string{"one", "two", "three", "7"}, Takes: 2 * time.Second, Until: ends})
	m := inKubernetes(t, k)
	k.Refuse(fakes.Refusal{Match: "/namespaces/flows/jobs", Status: 503},
		fakes.Refusal{Match: "POST /apis/batch/v1/namespaces/flows/jobs", Done: true,
			Then: func() { m.process.Kill() }})
	r := m.run("k4", nil, `a: {executor: kubernetes, image: i}`)
	<-m.process.Done()
	m.start()
	r.until("a", "running")
	require.Eventually(t, func() bool {
		_, logs := m.call("GET", "/v1/tasks/"+r.id+"/logs", nil)
		return len(logs["items"].([]any)) > 1
	}, patience, 10*time.Millisecond)
	m.process.Kill()
	m.start()
	close(ends)
	r.ends("success")
	require.Len(t, k.Made(), 1)
	require.EqualValues(t, 1, r.task("a")["attempt"])
	r.printed("one", "two", "three", "7")
}

func TestCanceledKubernetesJobIsNotAwaited(t *testing.T) {
	t.Parallel()
	k := fakes.NewKubernetes(t)
	k.Behave("endless", fakes.Image{Takes: time.Hour})
	m := inKubernetes(t, k)
	r := m.run("k5", nil, `a: {executor: kubernetes, image: endless}`)
	r.until("a", "running")
	status, _ := m.call("POST", "/api/runs/"+r.id+"/cancel", obj{"force": true})
	require.Equal(t, 200, status)
	r.ends("cancelled")
	require.Eventually(t, func() bool { return k.Made()[0].Gone }, patience, 10*time.Millisecond)
	late := m.run("k6", nil, `a: {executor: kubernetes, image: endless, timeout: 1}`)
	late.ends("failed")
	require.Equal(t, "execution timeout", late.task("a")["error"])
	require.Eventually(t, func() bool { return k.Made()[1].Gone }, patience, 10*time.Millisecond)
}

func TestCredentialPluginProvidesKubernetesTokens(t *testing.T) {
	t.Parallel()
	k := fakes.NewKubernetes(t)
	k.Behave("ok", fakes.Image{Prints: []string{"ORK_OUTPUT:7"}})
	m := newMember(t, nil, "--kubernetes-config", k.LoginConfig(t), "--kubernetes-namespace", "flows")
	r := m.run("login", nil, `a: {executor: kubernetes, image: ok}`)
	r.ends("success")
	require.Equal(t, 7.0, r.task("a")["output"])
}
