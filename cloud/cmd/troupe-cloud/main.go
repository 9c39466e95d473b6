// Command troupe-cloud is troupe, and begins and looks after jobs in clouds, too.
package main

import (
	"github.com/troupe-engine/troupe/cloud"
	"github.com/troupe-engine/troupe/internal/cli"
)

func main() { cli.Main("troupe-cloud", &cloud.Addition{}) }
