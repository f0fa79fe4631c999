// Package dynamodb keeps the journals of pools in a DynamoDB table, one item for each pool.
//
// The attribute journal is the journal. Further attributes show its content to other programs and
// to people, with the names that the scripts replaced by Foresail use: scalingInProgress,
// lastScaleEpoch and the fields of an open scale-up or scale-down. They are read only if an item
// has no journal yet: then the pool takes over the cooldown of the writer. Attributes with other
// names are kept. The journal of another pool, or of a pool of another cluster, is neither read nor
// written.
//
// The table must exist: its partition key is a string, by default clusterId, and it has no sort
// key.
package dynamodb
