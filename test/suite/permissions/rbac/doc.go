// Package rbac proves that the roles of the manifests allow Foresail what it does, and nothing else.
//
// The suites on a real control plane run Foresail with the roles of manifests/, bound to its
// ServiceAccount. Their API server keeps an audit log of what that account asks for. After its
// tests a suite compares the log with the roles, by [Run]:
//
//   - No request was forbidden that the roles do not allow. One that they do allow is forbidden only while a test has taken the role
//     away, or in the milliseconds before the API server knows it. What a test expects to be forbidden is in [Suite.Forbidden].
//   - Each right, a rule of a role taken apart to one verb, group, resource and name, was used. This is known only after all tests of
//     a suite have run and passed: a run with -run, -skip or -short does not look. Rights for rare moments or other clusters are in
//     [Suite.Unused] or, if only some runs need them, in [Suite.Rare], with the reason.
//
// Each suite answers for the roles that its tests are about, by the table [Suites]. So nothing has
// to be kept from one suite for another. A test of this package fails if a role that is bound to
// Foresail is in no suite.
package rbac
