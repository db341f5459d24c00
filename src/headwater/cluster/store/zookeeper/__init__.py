"""The store on ZooKeeper, through kazoo."""
