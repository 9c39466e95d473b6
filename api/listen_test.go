package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckListen(t *testing.T) {
	for name, tt := range map[string]struct {
		addr     string
		tokens   []string
		insecure bool
		refused  bool
	}{
		"loopback needs nothing":               {addr: "127.0.0.1:8070"},
		"localhost needs nothing":              {addr: "localhost:8070"},
		"IPv6 loopback needs nothing":          {addr: "[::1]:8070"},
		"every interface needs tokens":         {addr: ":8070", refused: true},
		"another address needs tokens":         {addr: "10.0.0.5:8070", refused: true},
		"a name needs tokens":                  {addr: "troupe.example:8070", refused: true},
		"tokens open any address":              {addr: ":8070", tokens: []string{"t"}},
		"the explicit wish opens any address":  {addr: "0.0.0.0:8070", insecure: true},
		"an address without a port is refused": {addr: "127.0.0.1", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckListen(tt.addr, tt.tokens, tt.insecure)
			require.Equal(t, tt.refused, err != nil, "%v", err)
		})
	}
}
