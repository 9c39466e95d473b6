package operate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// TokenCommand groups the commands for access tokens. Tokens with which a member was started are
// not among them.
type TokenCommand struct {
	Create tokenCreateCmd `cmd:"" help:"Create a token. It is shown only once."`
	List   tokenListCmd   `cmd:"" help:"List tokens."`
	Delete tokenDeleteCmd `cmd:"" help:"Delete tokens."`
}

type tokenCreateCmd struct {
	console.RemoteFlags
	Name    string        `arg:"" help:"Token name."`
	Role    string        `enum:"viewer,approver,operator,author,admin,worker" required:"" help:"Role: viewer, approver, operator, author, admin or worker."`
	Expires time.Duration `default:"0s" help:"Lifetime, such as 2160h. Default: unlimited."`
}

func (c *tokenCreateCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	made, err := server.CreateToken(ctx, wire.TokenRequest{Name: c.Name, Role: c.Role, ExpiresInMS: c.Expires.Milliseconds()})
	switch {
	case err != nil:
		return err
	case c.IsJSON():
		return console.PrintJSON(a.Stdout, made)
	}
	if err := console.PrintFields(a.Stdout, "Name", made.Name, "Role", made.Role, "Expires",
		momentOrNone(made.ExpiresAt), "Token", made.Secret); err != nil {
		return err
	}
	fmt.Fprintln(a.Stderr, "Store the token now: it is not shown again.")
	return nil
}

type tokenListCmd struct{ console.RemoteFlags }

func (c *tokenListCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	tokens, err := server.Tokens(ctx)
	if err != nil {
		return err
	}
	t := console.Table{Header: []string{"NAME", "ROLE", "LAST USED", "EXPIRES", "CREATED", "CREATED BY"},
		Spare: []string{"CREATED BY", "CREATED"}}
	return console.PrintPage(a, c.OutputFlag, tokens, t, func(k *wire.Token) []string {
		return []string{k.Name, k.Role, cmp.Or(momentOrNone(k.LastUsedAt), "never"),
			cmp.Or(momentOrNone(k.ExpiresAt), "never"), console.FormatTime(k.CreatedAt), k.CreatedBy}
	})
}

type tokenDeleteCmd struct {
	console.RemoteFlags
	Tokens []string `arg:"" name:"name" help:"Token names or IDs."`
}

func (c *tokenDeleteCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	for _, name := range c.Tokens {
		deleted, err := server.DeleteToken(ctx, name)
		switch {
		case err != nil:
			return err
		case c.IsJSON():
			err = console.PrintLine(a.Stdout, deleted)
		default:
			_, err = fmt.Fprintf(a.Stdout, "%s deleted\n", console.SanitizeText(deleted.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
