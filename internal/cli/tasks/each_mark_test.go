package tasks

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAByteOrderMarkIsNoPartOfTheValues(t *testing.T) {
	for text, want := range map[string]string{"\ufeff{}": "{}", "{}": "{}", "": "", "\ufeff": ""} {
		read, err := io.ReadAll(withoutMark(strings.NewReader(text)))
		require.NoError(t, err)
		require.Equal(t, want, string(read))
	}
}
