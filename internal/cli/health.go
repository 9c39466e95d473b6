package cli

import (
	"context"
	"fmt"
	"time"
)

type healthCmd struct {
	remoteFlags
	Live    bool          `help:"Ask only whether the process answers, not whether it can do its work."`
	Timeout time.Duration `default:"5s" help:"How long the answer may take (${default})."`
}

// Help describes the purpose of the command.
func (healthCmd) Help() string {
	return `Exits with 0 if the member is ready: it holds its lease, writes to its store and reaches it. It needs no token, and no client certificate.
Made for the health checks of containers, whose image may hold nothing but this program.`
}

func (c *healthCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	ask, well := server.Ready, "ready"
	if c.Live {
		ask, well = server.Alive, "alive"
	}
	if err := ask(ctx); err != nil {
		return err
	}
	if c.isJSON() {
		return printJSON(a.stdout, map[string]string{"status": well})
	}
	fmt.Fprintln(a.stdout, well)
	return nil
}
