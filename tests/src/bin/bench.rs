//! Figures against their limits and peers: `bench FIGURE`.

fn main() {
    coord_tests::bench::main();
}
