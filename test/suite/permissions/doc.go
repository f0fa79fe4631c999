// Package permissions has the tests of docs/examples/ec2: the policies against the calls that the
// code makes, the templates, and pools that run with nothing but what these grant.
package permissions
