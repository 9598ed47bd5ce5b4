"""A destination of the partner SDK's contract: batches over gRPC end in history tables."""
