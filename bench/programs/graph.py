"""Two algorithms of networkx, one of them slow. FIX=1 samples it."""
import os
import networkx as nx

graph = nx.gnm_random_graph(350, 1800, seed=1)
nx.betweenness_centrality(graph, k=10 if os.environ.get("FIX") else None)
for _ in range(8):
    nx.pagerank(graph) if False else nx.clustering(graph)
