package flows_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func reference(t *testing.T) string {
	text, err := os.ReadFile("../../docs/reference/flows.md")
	require.NoError(t, err)
	return string(text)
}

func TestDefinitionsInTheReferenceHaveNoProblems(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(reference(t), -1)
	kinds := map[flow.Kind]bool{}
	for _, block := range blocks {
		plan, problems := compile.Text([]byte(block[1]), flow.Limits{})
		require.Empty(t, problems, block[1])
		for _, node := range plan.Root.Nodes {
			kinds[node.Kind] = true
		}
	}
	require.GreaterOrEqual(t, len(kinds), 8, "there is an example of every kind")
}

// pages returns the pages about fields to which the reference links.
func pages(t *testing.T) (text string) {
	for _, page := range []string{"reference/executors.md", "how-to/outside-work.md"} {
		require.Contains(t, reference(t), filepath.Base(page)+")")
		b, err := os.ReadFile("../../docs/" + page)
		require.NoError(t, err)
		text += string(b)
	}
	return text
}

func TestTheReferenceNamesEveryField(t *testing.T) {
	text := reference(t) + pages(t)
	known := map[reflect.Type]bool{}
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			look(of.Elem())
		case reflect.Struct:
			if known[of] {
				return
			}
			known[of] = true
			for i := range of.NumField() {
				field := of.Field(i)
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if name == "" {
					continue
				}
				require.Regexp(t, "`([a-z]+\\.)?"+name+"`", text, "%s.%s", of.Name(), field.Name)
				look(field.Type)
			}
		}
	}
	look(reflect.TypeFor[definition.Definition]())
}

func TestTheReferenceListsEveryExample(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, file := range examples(t) {
		require.Contains(t, string(text), "["+file+"]("+file+")")
	}
}
