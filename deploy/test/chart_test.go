// Package deploy checks the folder deploy as far as possible without Docker, Kubernetes and a
// running systemd. Everything is decoded strictly into the types of its readers, and the release
// program runs as in the image.
package deploy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write deploy/kubernetes/troupe.yaml anew")

const (
	chartFolder = "../helm/troupe"
	manifests   = "../kubernetes/troupe.yaml"
)

// header is the header of the rendered manifests.
const header = `# Three members, as the Helm chart beside this renders them with its default values. Do not edit: change the chart, then
#
#   cd deploy/test && go test -run Manifests -update
#
# The Secret comes first:
#
#   deploy/kubernetes/secret.sh 'postgres://troupe:PASSWORD@HOST/troupe' default troupe | kubectl create -f -
`

// render renders the chart: a text for each template that is not empty, sorted by name.
func render(t *testing.T, values map[string]any) ([]string, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	require.NoError(t, err)
	release := common.ReleaseOptions{Name: "troupe", Namespace: "default", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var names, texts []string
	for name, text := range files {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text) != "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		texts = append(texts, strings.TrimSpace(files[name])+"\n")
	}
	return texts, nil
}

// objects are the rendered Kubernetes objects.
type objects struct {
	set      appsv1.StatefulSet
	budget   policyv1.PodDisruptionBudget
	secret   *corev1.Secret
	services []corev1.Service
}

// decode decodes manifests strictly: unknown fields are errors.
func decode(t *testing.T, text string) objects {
	t.Helper()
	var all objects
	for _, doc := range strings.Split(text, "\n---\n") {
		var kind struct{ Kind, APIVersion string }
		require.NoError(t, yaml.Unmarshal([]byte(doc), &kind), doc)
		var into any
		switch kind.APIVersion + " " + kind.Kind {
		case "apps/v1 StatefulSet":
			into = &all.set
		case "policy/v1 PodDisruptionBudget":
			into = &all.budget
		case "v1 Secret":
			all.secret = new(corev1.Secret)
			into = all.secret
		case "v1 Service":
			all.services = append(all.services, corev1.Service{})
			into = &all.services[len(all.services)-1]
		default:
			require.FailNow(t, "an object of an unexpected kind", doc)
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(doc), into), doc)
	}
	return all
}

func rendered(t *testing.T, values map[string]any) objects {
	t.Helper()
	texts, err := render(t, values)
	require.NoError(t, err)
	return decode(t, strings.Join(texts, "---\n"))
}

// with returns values for a release with an existing Secret.
func with(pairs ...any) map[string]any {
	values := map[string]any{"secret": map[string]any{"existing": "troupe"}}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i].(string)] = pairs[i+1]
	}
	return values
}

func (o *objects) container() *corev1.Container { return &o.set.Spec.Template.Spec.Containers[0] }

// env returns the value of a member's variable.
func (o *objects) env(name string) string {
	for _, v := range o.container().Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func TestManifestsAreWhatTheChartRenders(t *testing.T) {
	texts, err := render(t, with())
	require.NoError(t, err)
	want := header + strings.ReplaceAll("---\n"+strings.Join(texts, "---\n"),
		"app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl")
	if *update {
		require.NoError(t, os.WriteFile(manifests, []byte(want), 0o644))
	}
	got, err := os.ReadFile(manifests)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "renew it: cd deploy/test && go test -run Manifests -update")
}

func TestMembersFindEachOtherAndAreFound(t *testing.T) {
	o := rendered(t, with())
	labels := o.set.Spec.Template.Labels
	selects := func(selector map[string]string) {
		require.NotEmpty(t, selector)
		for key, value := range selector {
			require.Equal(t, value, labels[key])
		}
	}
	selects(o.set.Spec.Selector.MatchLabels)
	selects(o.budget.Spec.Selector.MatchLabels)
	require.Equal(t, "1", o.budget.Spec.MaxUnavailable.String())
	require.Len(t, o.services, 2)
	ports := map[string]int32{}
	for _, p := range o.container().Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, s := range o.services {
		selects(s.Spec.Selector)
		for _, p := range s.Spec.Ports {
			require.Contains(t, ports, p.TargetPort.String())
		}
	}
	headless := o.services[1]
	require.Equal(t, corev1.ClusterIPNone, headless.Spec.ClusterIP)
	require.True(t, headless.Spec.PublishNotReadyAddresses)
	require.Equal(t, o.set.Spec.ServiceName, headless.Name)
	require.Equal(t, headless.Name+".default.svc:8071", o.env("TROUPE_JOIN"))
	require.Equal(t, "$(POD_IP):8071", o.env("TROUPE_GOSSIP"))
	require.Equal(t, "http://$(POD_IP):8070", o.env("TROUPE_ADVERTISE"))
	require.EqualValues(t, 3, *o.set.Spec.Replicas)
	for _, name := range []string{"troupe", "troupe.default", "troupe.default.svc", "troupe.default.svc.cluster.local"} {
		require.Contains(t, strings.Split(o.env("TROUPE_ALLOW_HOST"), ","), name)
	}
}

func TestVariablesAreDefinedBeforeTheyAreUsed(t *testing.T) {
	for _, values := range []map[string]any{with(), with("tls", map[string]any{"secret": "cert"}), with("ipv6", true)} {
		o := rendered(t, values)
		seen := map[string]bool{}
		for _, v := range o.container().Env {
			require.False(t, seen[v.Name], "%s is set twice", v.Name)
			for _, part := range strings.Split(v.Value, "$(")[1:] {
				name, _, _ := strings.Cut(part, ")")
				require.True(t, seen[name], "%s uses %s, which comes later or not at all", v.Name, name)
			}
			seen[v.Name] = true
		}
	}
}

func TestProbesAskTheRoutesThatAreThere(t *testing.T) {
	for scheme, values := range map[corev1.URIScheme]map[string]any{
		corev1.URISchemeHTTP:  with(),
		corev1.URISchemeHTTPS: with("tls", map[string]any{"secret": "cert", "clients": true}),
	} {
		o := rendered(t, values)
		c := o.container()
		for probe, path := range map[*corev1.Probe]string{c.ReadinessProbe: "/readyz",
			c.LivenessProbe: "/healthz", c.StartupProbe: "/healthz"} {
			require.Equal(t, path, probe.HTTPGet.Path)
			require.Equal(t, scheme, probe.HTTPGet.Scheme)
			require.Equal(t, "api", probe.HTTPGet.Port.String())
		}
		// The pause, and the time a member needs for the hand-over.
		pause := c.Lifecycle.PreStop.Sleep.Seconds
		require.GreaterOrEqual(t, *o.set.Spec.Template.Spec.TerminationGracePeriodSeconds, pause+25)
	}
}

func TestMembersHaveMinimalPermissions(t *testing.T) {
	o := rendered(t, with())
	pod := o.set.Spec.Template.Spec
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.NotZero(t, *pod.SecurityContext.RunAsUser)
	require.False(t, *pod.AutomountServiceAccountToken)
	c := o.container().SecurityContext
	require.False(t, *c.AllowPrivilegeEscalation)
	require.True(t, *c.ReadOnlyRootFilesystem)
	require.Equal(t, []corev1.Capability{"ALL"}, c.Capabilities.Drop)
	require.NotZero(t, o.container().Resources.Requests.Memory().Value())
	require.NotZero(t, o.container().Resources.Requests.Cpu().MilliValue())
	require.NotZero(t, o.container().Resources.Limits.Memory().Value())
}

func TestTheChartMakesTheSecretOfItsValues(t *testing.T) {
	o := rendered(t, map[string]any{"secret": map[string]any{
		"store": "postgres://a:b@c/d", "token": "the token", "gossipKey": "the key", "clusterSecret": "the secret"}})
	require.Equal(t, map[string]string{"store": "postgres://a:b@c/d", "token": "the token",
		"gossip-key": "the key", "cluster-secret": "the secret"}, o.secret.StringData)
	pod, err := yaml.Marshal(o.set)
	require.NoError(t, err)
	for _, value := range o.secret.StringData {
		require.NotContains(t, string(pod), value)
	}
	require.Nil(t, ptr(rendered(t, with())).secret, "one that is there is left alone")
	mounted := o.set.Spec.Template.Spec.Volumes[0].Secret
	require.Equal(t, o.secret.Name, mounted.SecretName)
	for _, item := range mounted.Items {
		require.Contains(t, o.secret.StringData, item.Key)
		require.True(t, slices.ContainsFunc(o.container().Env,
			func(v corev1.EnvVar) bool { return v.Value == "/etc/troupe/"+item.Path }), item.Path)
	}
}

func ptr[T any](v T) *T { return &v }

func TestTLSIsSetUp(t *testing.T) {
	o := rendered(t, with("tls", map[string]any{"secret": "cert", "clients": true}))
	require.Equal(t, "/etc/troupe-tls/tls.crt", o.env("TROUPE_TLS_CERT"))
	require.Equal(t, "/etc/troupe-tls/tls.key", o.env("TROUPE_TLS_KEY"))
	require.Equal(t, "/etc/troupe-tls/ca.crt", o.env("TROUPE_CA"))
	require.Equal(t, "/etc/troupe-tls/ca.crt", o.env("TROUPE_TLS_CLIENT_CA"))
	require.Equal(t, "https://$(TROUPE_NAME).troupe-members.default.svc:8070", o.env("TROUPE_ADVERTISE"))
	require.Contains(t, o.env("TROUPE_ALLOW_HOST"), "$(TROUPE_NAME).troupe-members.default.svc")
	require.Equal(t, "cert", o.set.Spec.Template.Spec.Volumes[1].Secret.SecretName)
}

func TestEveryValueHasAnEffect(t *testing.T) {
	for name, tt := range map[string]struct {
		values map[string]any
		want   string
	}{
		"allowHosts":      {with("allowHosts", []any{"flows.example"}), "cluster.local,flows.example"},
		"workerNetworks":  {with("workerNetworks", []any{"10.0.0.0/8", "fd00::/8"}), "10.0.0.0/8,fd00::/8"},
		"env":             {with("env", map[string]any{"TROUPE_RETENTION": "48h"}), "value: 48h"},
		"a number in env": {with("env", map[string]any{"TROUPE_MAX_UNITS": 1000000}), `value: "1000000"`},
		"ipv6":            {with("ipv6", true), "http://[$(POD_IP)]:8070"},
		"cluster":         {with("cluster", "east"), "value: east"},
		"image": {with("image", map[string]any{"repository": "registry.example/troupe",
			"tag": "v1"}), "registry.example/troupe:v1"},
		"imagePullSecrets":  {with("imagePullSecrets", []any{map[string]any{"name": "pull"}}), "name: pull"},
		"gossipProfile":     {with("gossipProfile", "lan"), "value: lan"},
		"logFormat":         {with("logFormat", "text"), "value: text"},
		"podLabels":         {with("podLabels", map[string]any{"team": "flows"}), "team: flows"},
		"podAnnotations":    {with("podAnnotations", map[string]any{"a": "b"}), "a: b"},
		"nodeSelector":      {with("nodeSelector", map[string]any{"disk": "ssd"}), "disk: ssd"},
		"tolerations":       {with("tolerations", []any{map[string]any{"key": "flows"}}), "key: flows"},
		"affinity":          {with("affinity", map[string]any{"podAntiAffinity": map[string]any{}}), "podAntiAffinity"},
		"priorityClassName": {with("priorityClassName", "high"), "priorityClassName: high"},
		"resources":         {with("resources", map[string]any{"requests": map[string]any{"cpu": "7"}}), `cpu: "7"`},
		"replicas":          {with("replicas", 5), "replicas: 5"},
	} {
		t.Run(name, func(t *testing.T) {
			o := rendered(t, tt.values)
			text, err := yaml.Marshal(o.set)
			require.NoError(t, err)
			require.Contains(t, string(text), tt.want)
		})
	}
	o := rendered(t, with("service", map[string]any{"type": "LoadBalancer", "port": 80,
		"annotations": map[string]any{"a": "b"}}, "podDisruptionBudget",
		map[string]any{"maxUnavailable": "30%"}))
	require.Equal(t, corev1.ServiceTypeLoadBalancer, o.services[0].Spec.Type)
	require.EqualValues(t, 80, o.services[0].Spec.Ports[0].Port)
	require.Equal(t, map[string]string{"a": "b"}, o.services[0].Annotations)
	require.Equal(t, "30%", o.budget.Spec.MaxUnavailable.String())
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	values, err := common.ReadValues([]byte(`
secret: {existing: troupe}
replicas: 7
service: {port: 65535}
env: {TROUPE_MAX_VALUE: 16777216, TROUPE_MAX_UNITS: 1000000, TROUPE_TRACE_SAMPLE: 0.25, TROUPE_BIG: 9007199254740991, TROUPE_SMALL: 0, TROUPE_ON: true, TROUPE_OLD: "012"}
podAnnotations: {limit: "16777216"}
resources: {limits: {memory: 134217728000}}
`))
	require.NoError(t, err)
	o := rendered(t, values)
	for name, want := range map[string]string{"TROUPE_MAX_VALUE": "16777216", "TROUPE_MAX_UNITS": "1000000", "TROUPE_TRACE_SAMPLE": "0.25",
		"TROUPE_BIG": "9007199254740991", "TROUPE_SMALL": "0", "TROUPE_ON": "true", "TROUPE_OLD": "012"} {
		require.Equal(t, want, o.env(name))
	}
	require.EqualValues(t, 7, *o.set.Spec.Replicas)
	require.EqualValues(t, 65535, o.services[0].Spec.Ports[0].Port)
	require.EqualValues(t, 134217728000, o.set.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value())

	values, err = common.ReadValues([]byte("secret: {existing: secret}\nenv: {TROUPE_BIG: 9007199254740993}\n"))
	require.NoError(t, err)
	_, err = render(t, values)
	require.ErrorContains(t, err, "env.TROUPE_BIG is a number with more digits than Helm keeps: write it in quotes")
}

func TestWrongValuesAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		values map[string]any
		want   string
	}{
		"an unknown one":    {with("replica", 5), "replica"},
		"no members":        {with("replicas", 0), "replicas"},
		"a text for number": {with("replicas", "3"), "replicas"},
		"SQLite":            {map[string]any{"secret": map[string]any{"store": "sqlite:x.db"}}, "secret/store"},
		"an odd variable":   {with("env", map[string]any{"troupe retention": "1h"}), "propertyName"},
		"no secret":         {map[string]any{}, "deploy/kubernetes/secret.sh prints one"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, tt.values)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestTheScriptPrintsAllKeysOfTheSecret(t *testing.T) {
	text := output(t, "../kubernetes/secret.sh", "postgres://troupe:p@ss@db/troupe", "flows", "my-secret")
	var secret corev1.Secret
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &secret))
	require.Equal(t, "my-secret flows", fmt.Sprint(secret.Name, " ", secret.Namespace))
	require.Equal(t, "postgres://troupe:p@ss@db/troupe", string(secret.Data["store"]))
	isKey(t, secret.Data["gossip-key"])
	o := rendered(t, with())
	for _, item := range o.set.Spec.Template.Spec.Volumes[0].Secret.Items {
		require.GreaterOrEqual(t, len(secret.Data[item.Key]), 32, item.Key)
	}
	again := output(t, "../kubernetes/secret.sh", "postgres://db/troupe")
	require.False(t, bytes.Contains([]byte(again), secret.Data["token"]), "random ones")
}
