package dbt_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/dialect/ork/dbt"
)

// graph returns a project as lines: the selected models, each with the models that must be built
// before it.
func graph(t *testing.T, files fs.FS, folder string, patterns ...string) (lines []string) {
	t.Helper()
	p, problems := dbt.Read(files, folder)
	require.Empty(t, problems)
	chosen, none := p.Select(patterns)
	require.Empty(t, none)
	isChosen := map[*dbt.Model]bool{}
	for _, m := range chosen {
		isChosen[m] = true
	}
	for _, m := range chosen {
		line := m.Path + " as " + m.Name + ":"
		for _, before := range p.Before(m, func(m *dbt.Model) bool { return isChosen[m] }) {
			line += " " + before.Path
		}
		lines = append(lines, line)
	}
	return lines
}

func TestTheGraphComesFromTheManifestOrTheFiles(t *testing.T) {
	sales := map[string]string{"plain": "fct_sales", "parsed": "fct_sales.v2"}
	for folder, name := range sales {
		require.Equal(t, []string{
			"marts.core.dim_customers as dim_customers: staging.stg_customers staging.stg_orders",
			"marts.core.fct_orders as fct_orders: staging.stg_payments staging.stg_orders",
			"marts.fct_sales as " + name + ": marts.core.fct_orders marts.core.dim_customers",
			"staging.stg_customers as stg_customers: staging.stg_orders",
			"staging.stg_orders as stg_orders:",
			"staging.stg_payments as stg_payments:",
		}, graph(t, os.DirFS("testdata"), folder), folder)
	}
}

func TestModelsBetweenSelectedOnesKeepTheirOrder(t *testing.T) {
	for _, folder := range []string{"plain", "parsed"} {
		lines := graph(t, os.DirFS("testdata"), folder, "stg_orders", "marts.fct_sales")
		require.Len(t, lines, 2)
		require.Regexp(t, `^marts\.fct_sales as .*: staging\.stg_orders$`, lines[0])
	}
}

func TestModelsAreSelectedByFolderPathOrName(t *testing.T) {
	p, problems := dbt.Read(os.DirFS("testdata"), "plain")
	require.Empty(t, problems)
	for pattern, want := range map[string]string{
		"staging.*":       "staging.stg_customers staging.stg_orders staging.stg_payments",
		"marts.core.*":    "marts.core.dim_customers marts.core.fct_orders",
		"marts.*":         "marts.core.dim_customers marts.core.fct_orders marts.fct_sales",
		"marts.fct_sales": "marts.fct_sales",
		"fct_sales":       "marts.fct_sales",
		"fct_*":           "marts.core.fct_orders marts.fct_sales",
		"marts.fct_*":     "marts.fct_sales",
		"*.core.fct_*":    "marts.core.fct_orders",
		"*": "marts.core.dim_customers marts.core.fct_orders marts.fct_sales " +
			"staging.stg_customers staging.stg_orders staging.stg_payments",
		"staging": "",
		"core.*":  "",
		"[":       "",
	} {
		chosen, none := p.Select([]string{pattern})
		var names []string
		for _, m := range chosen {
			names = append(names, m.Path)
		}
		require.Equal(t, want, strings.Join(names, " "), pattern)
		require.Equal(t, want == "", len(none) == 1, pattern)
	}
}

func TestAFolderWithoutAProjectIsNotAProject(t *testing.T) {
	p, problems := dbt.Read(fstest.MapFS{"x/models/a.sql": {}}, "x")
	require.Nil(t, p)
	require.Empty(t, problems)
}

// project returns the files of a project in the folder p.
func project(files map[string]string) fs.FS {
	all := fstest.MapFS{"p/dbt_project.yml": {Data: []byte("name: shop\n")}}
	for name, text := range files {
		all["p/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

func TestUnreadablePartsAreReportedWithFileAndLine(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a name that is made": {map[string]string{"models/a.sql": "select 1\nfrom {{ " +
			"ref(var('x')) }}"}, "p/models/a.sql:2:9: only dbt knows what this refers to: write " +
			"ref('model') or ref('project', 'model'), or have dbt parse write target/manifest.json"},
		"a version": {map[string]string{"models/a.sql": "{{ ref('b', v=2) }}",
			"models/b.sql": ""}, "p/models/a.sql:1:4: only dbt knows"},
		"no such model": {map[string]string{"models/orders.sql": "",
			"models/x/a.sql": "--\n\n  {{ref('order')}}"},
			"p/models/x/a.sql:3:5: there is no model, seed or snapshot order: did you mean " +
				"orders?; if it is one of a package, have dbt parse write target/manifest.json"},
		"an open template": {map[string]string{"models/a.sql": "\n{{ ref('b') "},
			"p/models/a.sql:2:1: a {{ without its }}"},
		"an open statement": {map[string]string{"models/a.sql": "{% if x "},
			"p/models/a.sql:1:1: a {% without its %}"},
		"an open comment": {map[string]string{"models/a.sql": "é {# x"},
			"p/models/a.sql:1:3: a {# without its #}"},
		"an open text": {map[string]string{"models/a.sql": "{{ 'x }}"},
			"p/models/a.sql:1:1: a text in this template without its end"},
		"an open raw": {map[string]string{"models/a.sql": "x\n{% raw %} {% endra %}"},
			"p/models/a.sql:2:1: a {% raw %} without its {% endraw %}"},
		"a model in Python": {map[string]string{"models/a.py": "def model(dbt, session): ..."},
			"p/models/a.py:1:1: is a model in Python, whose references are not read: have dbt " +
				"parse write target/manifest.json, which says what it needs"},
		"two models of a name": {map[string]string{"models/a.sql": "", "models/x/a.sql": ""},
			"p/models/x/a.sql:1:1: has the name of the model models/a.sql: give one of them " +
				"another, which dbt wants, too"},
		"a large model": {map[string]string{"models/a.sql": strings.Repeat(" ",
			definition.MaxText+1)}, "p/models/a.sql:1:1: cannot be read: it has more than 1048576 bytes"},
		"no manifest": {map[string]string{"target/manifest.json": "[]"},
			"p/target/manifest.json:1:1: cannot be read: it has [ where an object begins: have " +
				"dbt parse write it anew, or delete it, and the files of the models are read"},
		"half a manifest": {map[string]string{"target/manifest.json": `{"nodes": {"model.shop.a": {"resource_type": "model"`},
			"p/target/manifest.json:1:1: cannot be read: model.shop.a: unexpected EOF"},
		"a manifest of no nodes": {map[string]string{"target/manifest.json": `{"metadata": {}}`},
			"p/target/manifest.json:1:1: cannot be read: it has no nodes"},
		"a model of no path": {map[string]string{"target/manifest.json": `{"nodes": {"model.shop.a": {"resource_type": "model"}}}`},
			"p/target/manifest.json:1:1: the model model.shop.a has no path in it: have dbt " +
				"parse write it anew"},
		"paths that lead outside": {map[string]string{"dbt_project.yml": "name: x\nmodel-paths: " +
			"[../other]\ntarget-path: /tmp\n"},
			"p/dbt_project.yml:2:15: model-paths[0]: must be a folder inside of the project"},
		"a project that is none": {map[string]string{"dbt_project.yml": "name: [\n"}, "p/dbt_project.yml:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := dbt.Read(project(tt.files), "p")
			require.NotEmpty(t, problems)
			require.Contains(t, problems[0].String(), tt.want)
			require.Error(t, problems.Err())
		})
	}
}

func TestTheNumberOfReportedProblemsIsBounded(t *testing.T) {
	_, problems := dbt.Read(project(map[string]string{"models/a.sql": strings.Repeat("{{ ref(x) }}", 80_000)}), "p")
	require.Len(t, problems, 201)
	require.Equal(t, "p/models/a.sql:1:2404: there are more problems, from here on", problems[200].String())
}

func TestReferencesToPackagesAreIgnored(t *testing.T) {
	files := project(map[string]string{"models/a.sql": "{{ ref('utils', 'days') }}", "models/b.sql": "{{ ref('shop', 'a') }}"})
	require.Equal(t, []string{"a as a:", "b as b: a"}, graph(t, files, "p"))
}

func TestModelsInACycleComeBeforeThemselves(t *testing.T) {
	files := project(map[string]string{"models/a.sql": "{{ ref('b') }}", "models/b.sql": "{{ ref('a') }}"})
	require.Equal(t, []string{"a as a: b", "b as b: a"}, graph(t, files, "p"))
	require.Equal(t, []string{"a as a: a"}, graph(t, files, "p", "a"))
}

func TestModelPathsCanBeConfigured(t *testing.T) {
	files := project(map[string]string{"dbt_project.yml": "name: x\nmodel-paths: [sql, more]\nseed-paths: [data]\nsnapshot-paths: []\n",
		"sql/a.sql": "{{ ref('s') }}", "more/x/b.sql": "{{ ref('a') }}", "models/c.sql": "{{", "data/s.csv": ""})
	require.Equal(t, []string{"a as a:", "x.b as b: a"}, graph(t, files, "p"))
}

// FuzzRead checks that reading ends for any text of a model.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"{{ ref('a') }}", "{% raw %}{{{% endraw %}", "{#",
		"{% snapshot x %}{{ref(\"a\",'b')}}", "{{ {'a': (1, [2}} }}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, _ := dbt.Read(project(map[string]string{"models/a.sql": text}), "p")
		require.Len(t, p.Models, 1)
	})
}
