use kernels::ladder::transpose::tiled_rows;
use warpfold::{Buffer, Gpu};

fn launch(gpu: &Gpu, input: &Buffer<f32>, output: &mut Buffer<f32>) -> Result<(), warpfold::Error> {
    let (rows, columns) = (32_usize, 64_usize);
    // Positional arguments: `columns` and `rows` could be swapped.
    gpu.launch(tiled_rows::handle::<f32>(), 2, (input.view(), output.view_mut(), columns, rows))
}

fn main() {}
