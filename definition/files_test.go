package definition_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
)

func TestFilesBesideADefinitionAreReadUpToABound(t *testing.T) {
	files := fstest.MapFS{"a.yaml": {Data: []byte("x")},
		"large.yaml": {Data: []byte(strings.Repeat("x", definition.MaxText+1))}, "folder/b": {}}
	text, err := definition.Text(files, "a.yaml")
	require.NoError(t, err)
	require.Equal(t, "x", string(text))
	_, err = definition.Text(files, "none.yaml")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = definition.Text(files, "large.yaml")
	require.EqualError(t, err, "it has more than 1048576 bytes")
	_, err = definition.Text(files, "folder")
	require.Error(t, err)
}

func TestProblemsOfAnotherFileHaveItsName(t *testing.T) {
	problems := definition.Problems{{Path: "a.b", Line: 2, Column: 3, Severity: definition.SeverityError,
		Msg: "is wrong"}, {Severity: definition.SeverityWarning, Msg: "is odd"}}
	in := problems.In("x/ork.yaml")
	require.Equal(t, "x/ork.yaml:2:3: a.b: is wrong", in[0].String())
	require.Equal(t, "x/ork.yaml: warning: is odd", in[1].String())
	require.Empty(t, problems[0].File)
}
