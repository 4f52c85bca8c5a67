"""The linear algebra of label methods: sparse features, Gram matrices, label embeddings, groups."""
