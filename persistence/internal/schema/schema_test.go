package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommentsAndSpacesDoNotMakeAnotherSchema(t *testing.T) {
	one := hashOf("CREATE TABLE a (\n\tb text, -- what it is\n\tc text\n);")
	require.Equal(t, one, hashOf("-- first\nCREATE TABLE a ( b text,   -- other words\n c text );"))
	require.NotEqual(t, one, hashOf("CREATE TABLE a (b text, c bigint);"))
}
